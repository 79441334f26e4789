"""
What the name of a field says: its title in words, and whether it is infrastructure or a secret.

Titles of fields, kinds and changes are names in words, with abbreviations as people write them.

Names are all that other people's XRDs offer. kit.yaml overrules both guesses about what a field is
for (``advanced``, ``secret`` below ``fields``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_SPELLINGS = """
ACL ACLs AD AI AKS ALB AMI AMIs API APIs ARN ARNs ASG AWS AZ AZs CA CAs CD CDN CI CIDR CIDRs CLI
CMK CNAME CORS CPU CPUs CRD CRDs CSR CSV DB DBs DHCP DNS DNSSEC DR EBS EC2 ECR ECS EFS EIP EIPs
EKS ELB ENI ENIs FQDN FQDNs FTP GCE GCP GCS GKE GPU GPUs GUID HA HPA HTML HTTP HTTPS IaC IAM ID IDs
IdP IMAP iSCSI IO IOPS IP IPAM IPs IPv4 IPv6 JSON JWKS JWT K8s KMS LAN LB LBs LDAP LDAPS LTS MFA
mTLS NAT NFS NIC NICs NLB NTP OAuth OCI OIDC OS OSS OU PDB PEM PITR PV PVC PVCs PVs QPS RAM RBAC
RDS REST RPC RPO RPS RTO S3 SAML SAN SANs SDK SFTP SHA SKU SLA SLO SMB SMTP SNI SNS SQL SQS SSD SSH
SSL SSO STS TCP TLS TTL TXT UDP UI UID URI URIs URL URLs URN UTC UUID UUIDs vCPU vCPUs VIP VIPs
VLAN VLANs VM VMs VNet VNets VPC VPCs VPN VPNs WAF WAN XML XR XRD XRDs XRs YAML
KB MB GB TB PB KiB MiB GiB TiB PiB Kbps Mbps Gbps
ArgoCD CosmosDB DocumentDB DynamoDB GitHub GitLab GitOps GraphQL InfluxDB MariaDB MongoDB MySQL
NoSQL OpenAI OpenID OpenShift PostgreSQL PostgREST RabbitMQ SQLite TimescaleDB
"""
_SPELLING = {word.lower(): word for word in _SPELLINGS.split()}
_MIXED = sorted(
    (re.escape(word) for word in _SPELLING.values() if not re.fullmatch(r"[A-Z]+[0-9]*", word)),
    key=len,
    reverse=True,
)
_WORD = re.compile(
    rf"(?:{'|'.join(_MIXED)})(?![a-z])"
    r"|[A-Z][A-Z0-9]+s(?![a-z])"
    r"|[A-Z][A-Z0-9]*(?![a-z])"
    r"|[A-Z]?[^\W_A-Z0-9][^\W_A-Z]*"
    r"|[0-9][^\W_A-Z]*"
)


def words_of(name: str) -> list[str]:
    """Return the words of an identifier; abbreviations as they are spelled, others as written."""
    return [_SPELLING.get(word.lower(), word) for word in _WORD.findall(name)]


def spelt_out(name: str) -> str:
    """
    Write an identifier as a title: ``sizeGb`` is "Size GB", ``XAgentBudget`` is "Agent Budget".

    The conventional ``X`` prefix of Crossplane's kinds is removed.
    """
    return " ".join(map(_capitalised, words_of(re.sub(r"^X(?=[A-Z])", "", name)) or [name]))


def label_of(name: str) -> str:
    """Return a property's name as a label: only the first word starts with a capital."""
    first, *others = words_of(re.sub(r"^X(?=[A-Z])", "", name)) or [name]
    return " ".join([_capitalised(first), *map(_lower, others)])


def _capitalised(word: str) -> str:
    return word if word in _SPELLING.values() else word[:1].upper() + word[1:]


def _lower(word: str) -> str:
    """Return a word in lower case, unless it is an abbreviation."""
    is_short = word.isupper() or word in _SPELLING.values() or re.fullmatch("[A-Z][A-Z0-9]+s", word)
    return word if is_short else word.lower()


Schema = Mapping[str, Any]

INFRASTRUCTURE = frozenset(
    [
        "managementPolicies",
        "managementPolicy",
        "deletionPolicy",
        "providerConfigRef",
        "providerConfigName",
        "providerConfig",
        "providerConfigs",
        "providerConfigsRef",
        "providerRef",
        "providerConfigReference",
        "writeConnectionSecretToRef",
        "writeConnectionSecretsToNamespace",
        "connectionSecretNamespace",
        "publishConnectionDetailsTo",
        "publishConnectionDetailsWithStoreConfigRef",
        "compositionRef",
        "compositionSelector",
        "compositionRevisionRef",
        "compositionRevisionSelector",
        "compositionUpdatePolicy",
        "compositeDeletePolicy",
        "resourceRef",
        "resourceRefs",
        "claimRef",
        "environmentConfigRefs",
        "initProvider",
        "crossplane",
    ]
)
"""Fields that Crossplane or a provider reads, as XRDs pass them on."""

_SECRET_ENDS = frozenset(
    [
        "password",
        "passwords",
        "passwd",
        "pwd",
        "passphrase",
        "passphrases",
        "passcode",
        "token",
        "tokens",
        "credential",
        "credentials",
        "api-key",
        "api-keys",
        "apikey",
        "apikeys",
        "access-key",
        "access-keys",
        "accesskey",
        "secret-key",
        "secret-keys",
        "secretkey",
        "private-key",
        "private-keys",
        "privatekey",
        "signing-key",
        "account-key",
        "auth-key",
        "shared-key",
        "master-key",
        "license-key",
        "secret",
        "secrets",
        "client-secret",
        "webhook-secret",
        "shared-secret",
        "app-secret",
        "application-secret",
        "consumer-secret",
        "jwt-secret",
        "oauth-secret",
        "oidc-secret",
        "hmac-secret",
        "api-secret",
        "auth-secret",
        "session-secret",
        "cookie-secret",
        "signing-secret",
        "bot-secret",
    ]
)
_JOINED_ENDS = ("password", "passwd", "passphrase", "apikey", "secretkey", "privatekey")
"""Secrets in names without capitals: ``adminpassword``."""
_NEUTRAL_ENDS = frozenset(
    {"value", "values", "text", "plain", "plaintext", "data", "base64", "pem"}
)
_REFERENCE_PARENT = re.compile(r"(?i)(refs?|selectors?|valueFrom|reference)\Z")
_REFERENCE_HELP = re.compile(
    r"(?i)\b(names?|paths?|arns?|references?|refers?|refs?|existing)\b[^.]{0,60}\bsecrets?\b"
    r"|\bkeys?\s+(in|inside|within|of)\b[^.]{0,40}\bsecrets?\b"
    r"|\b(kubernetes|k8s)\s+secrets?\b"
    r"|\bsecrets?\s+(containing|holding|that\s+(contains?|holds?|stores?))\b"
)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def is_infrastructure(name: str) -> bool:
    """Return whether a field configures Crossplane or a provider rather than the product."""
    return name in INFRASTRUCTURE


def is_secret(name: str, schema: Schema, *, parent: str, siblings: Mapping[str, Any]) -> bool:
    """
    Return whether a field holds a secret as plain text.

    References do not: ``passwordSecretRef``, ``secretName``, the ``key`` of such a reference, or a
    text whose description says that it names a Secret.

    Args:
        parent: The name of the object that has the field.
        siblings: The properties of that object.
    """
    text = next(_texts(schema), None)
    if text is None or text.get("enum"):
        return False
    if _REFERENCE_PARENT.search(parent) or _REFERENCE_HELP.search(_help(schema)):
        return False
    if text.get("format") == "password":
        return True
    parts = [part.lower() for part in _PARTS.findall(name)]
    while parts and (parts[-1] in _NEUTRAL_ENDS or parts[-1].isdigit()):
        parts.pop()
    if not parts or _is_key_in_secret(parts, siblings):
        return False
    if parts[-1] in ("secret", "secrets") and len(parts) > 1:
        return "-".join(parts[-2:]) in _SECRET_ENDS  # tlsSecret, pullSecret name a Secret
    ends = {parts[-1], "-".join(parts[-2:])}
    return bool(ends & _SECRET_ENDS) or parts[-1].endswith(_JOINED_ENDS)


def _texts(schema: Schema) -> Iterator[Schema]:
    """Yield the schema of the text that a field holds, directly or in a list or map of texts."""
    for key in ("items", "additionalProperties"):
        inner = schema.get(key)
        if isinstance(inner, Mapping) and inner.get("type") == "string":
            yield inner
    if schema.get("type") == "string":
        yield schema


def _help(schema: Schema) -> str:
    return " ".join(str(schema.get("description") or "").split())


def _is_key_in_secret(parts: list[str], siblings: Mapping[str, Any]) -> bool:
    """Return whether the field is the key within a Secret that a sibling names."""
    names = {name.lower() for name in siblings}
    named = any(name.endswith(("secretname", "secretref", "existingsecret")) for name in names)
    return parts[-1] in ("key", "keys") and "secret" in parts[:-1] and named
