"""
Build objects, managed resources, Helm Releases and Secrets as plain data, and their passwords.

Of managed kinds only the namespaced generation (groups with ``.m.``): they have no
``deletionPolicy``, and their connection Secret is in their own namespace. What has no name gets one
by ``parts``. Passwords are derived, so that they stay the same without a random value in a station
(docs/adr/0026).

Stations import these names from ``orderkit.stations``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from compositions.station import Selector, StationRequest, StationResponse
from ground.objects.kube_objects import EXTERNAL_NAME, Manifest, dig, metadata

__all__ = [
    "KEEP",
    "MANAGE",
    "OBSERVE",
    "SEED_KEY",
    "SEED_MIN_BYTES",
    "SEED_NAME",
    "SEED_NAMESPACE",
    "SEED_SELECTOR",
    "STAND_IN_SEED",
    "Chart",
    "ManagementAction",
    "ProviderConfigRef",
    "SecretKey",
    "generated_password",
    "is_seed",
    "managed",
    "manifest",
    "provider_config",
    "release",
    "secret",
    "seed_secret",
]

ManagementAction = Literal["*", "Observe", "Create", "Update", "Delete", "LateInitialize"]

MANAGE: tuple[ManagementAction, ...] = ("*",)
"""Everything, deletion included."""
OBSERVE: tuple[ManagementAction, ...] = ("Observe",)
"""Only read what exists: the first step of an import. Needs an external name."""
KEEP: tuple[ManagementAction, ...] = ("Observe", "Create", "Update", "LateInitialize")
"""Everything but Delete: what exists in the cloud outlives its order."""

_OPTIONAL_SETS: tuple[set[str], ...] = (
    *({"Create", "Update", "Delete"}, {"Create", "Update", "LateInitialize"}, {"Create", "Update"}),
    *({"Create", "Delete", "LateInitialize"}, {"Create", "LateInitialize"}, {"Create", "Delete"}),
    *({"Create"}, {"Delete"}, {"Update"}, {"LateInitialize"}, {"Update", "LateInitialize"}, set()),
    {"Create", "Update", "Delete", "LateInitialize"},
)
"""What crossplane-runtime supports beside Observe; with another set a resource stays unsynced."""


@dataclass(frozen=True, slots=True)
class ProviderConfigRef:
    """Which provider's configuration a managed resource uses."""

    name: str = "default"
    kind: Literal["ClusterProviderConfig", "ProviderConfig"] = "ClusterProviderConfig"
    """A ``ProviderConfig`` is one of the resource's own namespace."""

    def to_json(self) -> dict[str, str]:
        """Return it as a managed resource's ``providerConfigRef``."""
        return {"kind": self.kind, "name": self.name}


@dataclass(frozen=True, slots=True)
class SecretKey:
    """One value of a Secret."""

    name: str
    key: str
    namespace: str = ""
    """Empty: the namespace of the object that refers to it."""

    def to_json(self) -> dict[str, str]:
        """Return it as a ``secretRef`` or ``secretKeyRef``."""
        namespace = {"namespace": self.namespace} if self.namespace else {}
        return {**namespace, "name": self.name, "key": self.key}


@dataclass(frozen=True, slots=True)
class Chart:
    """A Helm chart: its name, the URL of its repository, and an exact version."""

    name: str
    repository: str
    version: str


def manifest(
    api_version: str,
    kind: str,
    name: str = "",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **content: Any,
) -> Manifest:
    """
    Return an object.

    Args:
        name: Empty: `Parts.want` chooses it.
        content: Everything beside the metadata: ``spec``, ``data``, ``rules`` and so on.
    """
    meta = {"name": name, "labels": labels, "annotations": annotations}
    filled = {key: value for key, value in meta.items() if value}
    header: Manifest = {"apiVersion": api_version, "kind": kind}
    return {**header, **({"metadata": filled} if filled else {}), **content}


def managed(
    api_version: str,
    kind: str,
    for_provider: Mapping[str, Any],
    *,
    provider_config: ProviderConfigRef | str = "default",
    policies: Sequence[ManagementAction] = (),
    external_name: str = "",
    connection_secret: str = "",
) -> Manifest:
    """
    Return a managed resource, without a name.

    Args:
        provider_config: A text is the name of a ClusterProviderConfig.
        policies: Empty: the provider's default, which is all of them. See `MANAGE`, `OBSERVE` and
            `KEEP`.
        external_name: The name in the cloud. Never give it to a kind whose id the cloud assigns,
            except to observe or import one that exists.
        connection_secret: Name of the Secret, in the same namespace, for the connection details.

    Raises:
        ValueError: Crossplane does not support this set of policies, or a resource that is only
            observed has no external name.
    """
    if policies:
        _check_policies(policies)
    if tuple(policies) == OBSERVE and not external_name:
        raise ValueError(f"{kind}: a resource that is only observed needs an external name")
    config = provider_config
    ref = ProviderConfigRef(config) if isinstance(config, str) else config
    spec: dict[str, Any] = {
        **({"managementPolicies": list(policies)} if policies else {}),
        "forProvider": dict(for_provider),
        **(
            {"writeConnectionSecretToRef": {"name": connection_secret}} if connection_secret else {}
        ),
        "providerConfigRef": ref.to_json(),
    }
    annotations = {EXTERNAL_NAME: external_name} if external_name else None
    return manifest(api_version, kind, annotations=annotations, spec=spec)


def _check_policies(policies: Sequence[ManagementAction]) -> None:
    actions = set(policies)
    if actions != {"*"} and not ("Observe" in actions and actions - {"Observe"} in _OPTIONAL_SETS):
        raise ValueError(f"Crossplane does not support the management policies {sorted(actions)}")


def release(
    chart: Chart,
    values: Mapping[str, Any],
    *,
    namespace: str,
    provider_config: ProviderConfigRef | str = "default",
    secret_values: Mapping[str, SecretKey] | None = None,
    policies: Sequence[ManagementAction] = (),
) -> Manifest:
    """
    Return a Release of provider-helm, without a name.

    Args:
        values: The chart's values as data; they are never text.
        namespace: Where the chart is installed, in the cluster of the ProviderConfig. It is created
            if it is missing.
        secret_values: Values by their dotted path in the chart, from Secrets in the namespace of
            the Release.

    Raises:
        ValueError: A Secret is in another namespace, or the policies are not supported.
    """
    for path, secret_key in (secret_values or {}).items():
        if secret_key.namespace:
            raise ValueError(f"{path}: a Release reads Secrets of its own namespace only")
    from_secrets = [
        {"name": path, "valueFrom": {"secretKeyRef": secret_key.to_json()}}
        for path, secret_key in sorted((secret_values or {}).items())
    ]
    for_provider = {
        "chart": {"name": chart.name, "repository": chart.repository, "version": chart.version},
        "namespace": namespace,
        "values": dict(values),
        **({"set": from_secrets} if from_secrets else {}),
    }
    return managed(
        "helm.m.crossplane.io/v1beta1",
        "Release",
        for_provider,
        provider_config=provider_config,
        policies=policies,
    )


def provider_config(
    api_version: str,
    credentials: SecretKey,
    *,
    kind: Literal["ClusterProviderConfig", "ProviderConfig"] = "ProviderConfig",
    identity: Mapping[str, Any] | None = None,
) -> Manifest:
    """
    Return a configuration of provider-helm or provider-kubernetes, without a name.

    A namespaced XR can only compose a ``ProviderConfig``.

    Args:
        credentials: Where the kubeconfig is, with its namespace.
        identity: What proves who calls, if the kubeconfig alone does not: ``type``, ``source`` and
            perhaps ``secretRef``.

    Raises:
        ValueError: The Secret has no namespace.
    """
    if not credentials.namespace:
        raise ValueError(f"{kind}: the Secret {credentials.name} needs a namespace")
    spec: dict[str, Any] = {"credentials": {"source": "Secret", "secretRef": credentials.to_json()}}
    if identity:
        spec["identity"] = dict(identity)
    return manifest(api_version, kind, spec=spec)


def secret(values: Mapping[str, str], *, type_: str = "Opaque") -> Manifest:
    """Return a Secret with these values, without a name."""
    data = {key: base64.b64encode(text.encode()).decode() for key, text in values.items()}
    return manifest("v1", "Secret", type=type_, data=data)


SEED_NAMESPACE, SEED_NAME, SEED_KEY = "crossplane-system", "orderkit-password-seed", "seed"
SEED_SELECTOR = Selector("v1", "Secret", SEED_NAME, {}, SEED_NAMESPACE)
SEED_MIN_BYTES = 32
_REQUIREMENT = "orderkit-password-seed"
_ALPHABET = string.ascii_letters + string.digits
_LENGTH = 32
_EVERY_CLASS = "aA1"
"""What rules for passwords ask for; the derived characters might lack a class."""


def seed_secret(seed: str) -> Manifest:
    """Return the Secret that keeps a platform's seed."""
    return {
        **secret({SEED_KEY: seed}),
        "metadata": {"name": SEED_NAME, "namespace": SEED_NAMESPACE},
    }


def is_seed(manifest: Manifest) -> bool:
    """Say whether a Secret has a seed that is long enough."""
    return len(_decoded(manifest, SEED_KEY)) >= SEED_MIN_BYTES


STAND_IN_SEED = seed_secret("only for trials, no platform uses it")
"""What ``kit check``, ``kit test`` and plans use."""


def generated_password(
    request: StationRequest, response: StationResponse, part: str, key: str = "password"
) -> str | None:
    """
    Return the password that the Secret `part` keeps under `key`, or None: then wait with it.

    The observed Secret decides. Before there is one, the password is an HMAC of the order's uid,
    part and key with the platform's seed (Secret ``crossplane-system/orderkit-password-seed``, key
    ``seed``, at least 32 bytes), so every round gives the same until the Secret is observed, and
    also after somebody deleted it. 32 letters and digits, with at least one of each class.

    None is returned while the seed was not looked up, and with a fatal result if it is needed and
    missing: nothing that exists changes.
    """
    # before any branch: a requirement that is not repeated never settles
    response.require(_REQUIREMENT, "v1", "Secret", match_name=SEED_NAME, namespace=SEED_NAMESPACE)
    kept = _decoded(request.observed_resource(part), key)
    if kept:
        return kept.decode(errors="replace")
    if not request.is_answered(_REQUIREMENT):
        return None
    seed = _decoded(request.required_resource(_REQUIREMENT), SEED_KEY)
    if len(seed) < SEED_MIN_BYTES:
        if dig(request.observed_resource(part), "data", key) == "":
            return ""  # emptied by somebody, or by a snapshot: stays as it is
        response.fatal(
            f"Secret {SEED_NAMESPACE}/{SEED_NAME} has no {SEED_KEY} of at least {SEED_MIN_BYTES} "
            f"bytes, and Secret {part} has no {key} yet: ask the platform team",
            reason="NoPasswordSeed",
        )
        return None
    meta = metadata(request.xr)
    subject = [str(meta.get(name) or "") for name in ("uid", "namespace", "name")]
    return _derived(seed, "\0".join((*subject, part, key)))


def _decoded(secret: Manifest | None, key: str) -> bytes:
    text = dig(secret, "data", key)
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return b""


def _derived(seed: bytes, subject: str) -> str:
    number = int.from_bytes(hmac.digest(seed, subject.encode(), hashlib.sha512))
    characters: list[str] = []
    while len(characters) < _LENGTH - len(_EVERY_CLASS):
        number, index = divmod(number, len(_ALPHABET))
        characters.append(_ALPHABET[index])
    return "".join(characters) + _EVERY_CLASS
