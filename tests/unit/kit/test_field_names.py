"""What follows from a field's name alone: its title, and whether it holds a secret."""

from __future__ import annotations

from typing import Any

import pytest

from orderkit.core.kit.field_names import is_infrastructure, is_secret, label_of, spelt_out

TEXT: dict[str, Any] = {"type": "string"}


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("vmSize", "VM size"),
        ("numVMs", "Num VMs"),
        ("osDiskSizeGb", "OS disk size GB"),
        ("diskGib", "Disk GiB"),
        ("pvcName", "PVC name"),
        ("dbInstanceClass", "DB instance class"),
        ("publicUrl", "Public URL"),
        ("subnetIds", "Subnet IDs"),
        ("subnetIDs", "Subnet IDs"),
        ("allowedCIDRs", "Allowed CIDRs"),
        ("vCPUs", "vCPUs"),
        ("ipv4Cidr", "IPv4 CIDR"),
        ("awsAccountId", "AWS account ID"),
        ("gcpProjectId", "GCP project ID"),
        ("eksVersion", "EKS version"),
        ("rdsVpcIamRole", "RDS VPC IAM role"),
        ("tls_enabled", "TLS enabled"),
        ("dns-zone", "DNS zone"),
        ("s3BucketArn", "S3 bucket ARN"),
        ("HTTPSPort", "HTTPS port"),
        ("identity", "Identity"),
        ("basics", "Basics"),
        ("größe", "Größe"),
        ("teamName", "Team name"),
        ("$", "$"),
    ],
)
def test_a_label_spells_abbreviations_as_people_do(name: str, label: str) -> None:
    assert label_of(name) == label


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        ("XPostgreSQLInstance", "PostgreSQL Instance"),
        ("XEKSCluster", "EKS Cluster"),
        ("XAgentBudget", "Agent Budget"),
        ("XVm", "VM"),
        ("stage-kit", "Stage Kit"),
    ],
)
def test_a_kind_is_a_title_without_its_x(kind: str, title: str) -> None:
    assert spelt_out(kind) == title


@pytest.mark.parametrize(
    "name",
    [
        *("password", "adminPassword", "masterUserPassword", "db_password", "rootpassword"),
        *("PASSWORD", "passphrase", "token", "authToken", "apiToken", "tokens"),
        *("secretKey", "secretAccessKey", "accessKey", "privateKey", "sshPrivateKey", "apiKey"),
        *("api_key", "apikey", "clientSecret", "webhookSecret", "secret", "credentials"),
        *("passwordValue", "privateKeyPem", "token1"),
    ],
)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret(name, TEXT, parent="", siblings={})


@pytest.mark.parametrize(
    "name",
    [
        *("passwordSecretRef", "passwordSecretName", "secretName", "secretNamespace", "tokenTtl"),
        *("tokenTTL", "passwordLength", "passwordPolicy", "secretStoreRef", "secretArn"),
        *("accessKeyId", "publicKey", "sshPublicKey", "kmsKeyId", "encryptionKey", "key"),
        *("tlsSecret", "imagePullSecret", "imagePullSecrets", "existingSecret", "pullSecret"),
        *("tokenAudience", "tokenUrl", "secretType", "privateKeyPath", "passwordRotation"),
        *("compass", "tokenizer", "secretary", "keyboard", "passThrough"),
    ],
)
def test_a_reference_is_no_secret(name: str) -> None:
    assert not is_secret(name, TEXT, parent="", siblings={})


@pytest.mark.parametrize(
    ("reason", "name", "schema", "parent", "siblings"),
    [
        ("a flag", "password", {"type": "boolean"}, "", {}),
        ("a number", "tokens", {"type": "integer"}, "", {}),
        ("a group is judged by its fields", "credentials", {"type": "object"}, "", {}),
        ("choices are no secret", "token", {**TEXT, "enum": ["jwt", "opaque"]}, "", {}),
        ("the key of a reference", "secretKey", TEXT, "passwordSecretRef", {}),
        ("the key beside a name", "secretKey", TEXT, "", {"secretName": TEXT, "secretKey": TEXT}),
        (
            "the help says that it is a name",
            "password",
            {**TEXT, "description": "Name of the Secret with the password."},
            "",
            {},
        ),
        (
            "the help says that it refers",
            "credentials",
            {**TEXT, "description": "A reference to an existing Secret."},
            "",
            {},
        ),
    ],
)
def test_what_surrounds_a_name_decides(
    reason: str, name: str, schema: dict[str, Any], parent: str, siblings: dict[str, Any]
) -> None:
    assert not is_secret(name, schema, parent=parent, siblings=siblings), reason


def test_a_secret_whose_help_mentions_secrets_is_one() -> None:
    schema = {**TEXT, "description": "API key that opens the vault and its secrets."}

    assert is_secret("apiKey", schema, parent="", siblings={})


def test_lists_maps_and_formats_hold_secrets_too() -> None:
    listed = {"type": "array", "items": TEXT}
    mapped = {"type": "object", "additionalProperties": TEXT}

    assert is_secret("tokens", listed, parent="", siblings={})
    assert is_secret("secrets", mapped, parent="", siblings={})
    assert is_secret("pin", {**TEXT, "format": "password"}, parent="", siblings={})


def test_infrastructure_is_known_by_its_name() -> None:
    assert is_infrastructure("deletionPolicy")
    assert is_infrastructure("writeConnectionSecretToRef")
    assert not is_infrastructure("deletionProtection")
