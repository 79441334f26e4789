"""Titles of fields, kinds and changes: names in words, with abbreviations as people write them."""

from __future__ import annotations

import re

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
