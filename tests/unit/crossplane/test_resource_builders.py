"""Managed resources, Releases and ProviderConfigs are built as providers' schemas have them."""

from __future__ import annotations

import pytest

from orderkit.stations import (
    KEEP,
    OBSERVE,
    Chart,
    ManagementAction,
    ProviderConfigRef,
    SecretKey,
    managed,
    provider_config,
    release,
    secret,
)

S3 = "s3.aws.m.upbound.io/v1beta1"


def test_a_managed_resource_has_what_was_asked_for_and_nothing_else() -> None:
    plain = managed(S3, "Bucket", {"region": "eu-west-1"})
    full = managed(
        S3,
        "Bucket",
        {"region": "eu-west-1"},
        provider_config=ProviderConfigRef("mine", "ProviderConfig"),
        policies=KEEP,
        external_name="photos",
        connection_secret="photos-keys",
    )

    assert plain == {
        "apiVersion": S3,
        "kind": "Bucket",
        "spec": {
            "forProvider": {"region": "eu-west-1"},
            "providerConfigRef": {"kind": "ClusterProviderConfig", "name": "default"},
        },
    }
    assert full["metadata"] == {"annotations": {"crossplane.io/external-name": "photos"}}
    assert full["spec"] == {
        "managementPolicies": ["Observe", "Create", "Update", "LateInitialize"],
        "forProvider": {"region": "eu-west-1"},
        "writeConnectionSecretToRef": {"name": "photos-keys"},
        "providerConfigRef": {"kind": "ProviderConfig", "name": "mine"},
    }


def test_what_is_only_observed_needs_an_external_name() -> None:
    with pytest.raises(ValueError, match="needs an external name"):
        managed(S3, "Bucket", {}, policies=OBSERVE)

    assert managed(S3, "Bucket", {}, policies=OBSERVE, external_name="b")["spec"][
        "managementPolicies"
    ] == ["Observe"]


@pytest.mark.parametrize(
    "policies", [("Create",), ("Observe", "Delete", "Update"), ("*", "Create")]
)
def test_policies_that_crossplane_does_not_support_are_refused(
    policies: tuple[ManagementAction, ...],
) -> None:
    with pytest.raises(ValueError, match="does not support the management policies"):
        managed(S3, "Bucket", {}, policies=policies)


def test_a_release_has_its_values_as_data() -> None:
    chart = Chart("cert-manager", "https://charts.example.org", "v1.19.0")

    manifest = release(
        chart,
        {"crds": {"enabled": True}, "note": "yes: [no"},
        namespace="cert-manager",
        provider_config=ProviderConfigRef("one-helm", "ProviderConfig"),
        secret_values={"auth.password": SecretKey("admin", "password")},
    )

    assert manifest["spec"] == {
        "forProvider": {
            "chart": {
                "name": "cert-manager",
                "repository": "https://charts.example.org",
                "version": "v1.19.0",
            },
            "namespace": "cert-manager",
            "values": {"crds": {"enabled": True}, "note": "yes: [no"},
            "set": [
                {
                    "name": "auth.password",
                    "valueFrom": {"secretKeyRef": {"name": "admin", "key": "password"}},
                }
            ],
        },
        "providerConfigRef": {"kind": "ProviderConfig", "name": "one-helm"},
    }


def test_a_release_cannot_read_secrets_of_other_namespaces() -> None:
    with pytest.raises(ValueError, match="its own namespace only"):
        release(
            Chart("a", "https://charts.example.org", "1.0.0"),
            {},
            namespace="a",
            secret_values={"x": SecretKey("admin", "password", "kube-system")},
        )


def test_a_provider_config_names_its_secret_and_identity() -> None:
    identity = {"type": "GoogleApplicationCredentials", "source": "InjectedIdentity"}

    config = provider_config(
        "helm.m.crossplane.io/v1beta1", SecretKey("kube", "kubeconfig", "team-a"), identity=identity
    )

    assert config["kind"] == "ProviderConfig"
    assert config["spec"] == {
        "credentials": {
            "source": "Secret",
            "secretRef": {"namespace": "team-a", "name": "kube", "key": "kubeconfig"},
        },
        "identity": identity,
    }
    with pytest.raises(ValueError, match="needs a namespace"):
        provider_config("helm.m.crossplane.io/v1beta1", SecretKey("kube", "kubeconfig"))


def test_a_secret_has_its_values_encoded() -> None:
    assert secret({"user": "ann"})["data"] == {"user": "YW5u"}
