"""
``platform.yaml``: where one platform's forge, cluster, portal and service are.

It holds addresses and the *files* that hold credentials, never a credential. Relative paths
are relative to the file itself. ``orderkit up`` writes one into its state folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

from orderkit.core import access, yamltext
from orderkit.core.access import AccessSettings
from orderkit.core.baking import BUILT_IN, NAME, SAFE
from orderkit.core.documents import API_VERSION
from orderkit.core.errors import InvalidInputError
from orderkit.core.names import RepoId
from orderkit.core.profile import Profile, read_profile

_URL = {"type": "string", "pattern": r"^https?://[^\s/]+(/[^\s]*[^\s/])?$"}
_ENDPOINT: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["url", "tokenFile"],
    "properties": {
        "url": _URL,
        "tokenFile": {"type": "string", "minLength": 1},
    },
}
_PORTAL = {
    **_ENDPOINT,
    "properties": {
        **_ENDPOINT["properties"],
        "profile": {"type": "string"},
        "signedBy": _URL,
        "publicUrl": _URL,
        "clusterName": {"type": "string", "pattern": f"^{SAFE}$"},
    },
}
_SERVICE = {
    **_ENDPOINT,
    "properties": {**_ENDPOINT["properties"], "publicUrl": _URL, "access": access.SCHEMA},
}
_FORGE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["url"],
    "properties": {
        "url": _ENDPOINT["properties"]["url"],
        "tokenFile": {"type": "string", "minLength": 1},
        "credentials": {"enum": ["auto", "environment", "file", "idpbuilder", "git"]},
        "caFile": {"type": "string", "minLength": 1},
        "allowHttp": {"type": "boolean"},
    },
}
_REPOSITORY = {"type": "string", "pattern": r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$"}
_VALUES = {
    "type": "object",
    "propertyNames": {"pattern": f"^{NAME}$", "not": {"enum": list(BUILT_IN)}},
    "additionalProperties": {"type": "string", "pattern": f"^{SAFE}$"},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": "Platform"},
        "metadata": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name"],
            "properties": {"name": {"type": "string"}},
        },
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["forge", "cluster", "portal", "service"],
            "properties": {
                "forge": _FORGE,
                "portal": _PORTAL,
                "service": _SERVICE,
                "cluster": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["kubeconfig"],
                    "properties": {
                        "kubeconfig": {"type": "string"},
                        "context": {"type": "string"},
                    },
                },
                "packRepository": _REPOSITORY,
                "ledgerRepository": _REPOSITORY,
                "registry": {"type": "string"},
                "teams": {"type": "array", "items": {"type": "string"}},
                "values": _VALUES,
            },
        },
    },
}


CLUSTER_NAME = "local"
"""What a portal calls the cluster it runs in, unless platform.yaml says otherwise."""
LOCAL_REGISTRY = "registry.local"
"""Stands where a platform names the registry of its function packages."""
PACK, LEDGER = RepoId("platform", "pack"), RepoId("platform", "ledger")
"""The two repositories Orderkit keeps on a forge, unless platform.yaml names others."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An HTTP service: base URL without a final slash, and the file with its token."""

    url: str
    token_file: PurePath | None
    """None only for the forge, whose credentials may come from elsewhere."""
    credentials: Literal["auto", "environment", "file", "idpbuilder", "git"] = "auto"
    """Where the forge's credentials come from; auto takes the first that has any."""
    ca_file: PurePath | None = None
    """Certificates to trust instead of the usual ones (the forge's)."""
    allow_http: bool = False
    """Credentials may go over plain HTTP to another machine: a lab (the forge's)."""


@dataclass(frozen=True, slots=True)
class PlatformSettings:
    """One platform, as platform.yaml describes it."""

    name: str
    forge: Endpoint
    portal: Endpoint
    service: Endpoint
    kubeconfig: PurePath
    context: str | None = None
    pack: RepoId = PACK
    ledger: RepoId = LEDGER
    teams: Sequence[str] = ()
    profile: Profile = Profile.SERVICE
    """How the portal runs the pack's templates."""
    signed_by: str | None = None
    """The Backstage whose signatures prove who asks; None: requesters are claims."""
    access: AccessSettings = field(default_factory=AccessSettings)
    """Who else may call the service, and what groups may do."""
    portal_public_url: str = ""
    service_public_url: str = ""
    """As browsers reach them; empty: as we do."""
    registry: str = LOCAL_REGISTRY
    cluster_name: str = CLUSTER_NAME
    """What the portal calls the cluster; only the profile ``job`` asks."""
    values: Mapping[str, str] = field(default_factory=dict)
    """What a pack's hidden fields are baked with, by their names in kit.yaml."""

    def to_yaml(self) -> str:
        """Write it as ``platform.yaml``, paths as they are."""

        def endpoint(value: Endpoint) -> dict[str, Any]:
            found: dict[str, Any] = {"url": value.url}
            if value.token_file is not None:
                found["tokenFile"] = str(value.token_file)
            if value.credentials != "auto":
                found["credentials"] = value.credentials
            if value.ca_file is not None:
                found["caFile"] = str(value.ca_file)
            if value.allow_http:
                found["allowHttp"] = True
            return found

        cluster = {"kubeconfig": str(self.kubeconfig)}
        if self.context:
            cluster["context"] = self.context
        portal = {**endpoint(self.portal), "profile": str(self.profile)}
        if self.signed_by:
            portal["signedBy"] = self.signed_by
        if self.cluster_name != CLUSTER_NAME:
            portal["clusterName"] = self.cluster_name
        if self.portal_public_url:
            portal["publicUrl"] = self.portal_public_url
        return yamltext.dump(
            {
                "apiVersion": API_VERSION,
                "kind": "Platform",
                "metadata": {"name": self.name},
                "spec": {
                    "forge": endpoint(self.forge),
                    "cluster": cluster,
                    "portal": portal,
                    "service": self._service(endpoint(self.service)),
                    "packRepository": str(self.pack),
                    "ledgerRepository": str(self.ledger),
                    "registry": self.registry,
                    "teams": list(self.teams),
                    **({"values": dict(self.values)} if self.values else {}),
                },
            }
        )

    def _service(self, spec: dict[str, Any]) -> dict[str, Any]:
        if self.service_public_url:
            spec["publicUrl"] = self.service_public_url
        if written := self.access.to_spec():
            spec["access"] = written
        return spec

    @property
    def portal_address(self) -> str:
        """The portal as a browser reaches it."""
        return self.portal_public_url or self.signed_by or self.portal.url

    @property
    def service_address(self) -> str:
        """The service as a browser reaches it."""
        return self.service_public_url or self.service.url


def read_values(assignments: Sequence[str]) -> dict[str, str]:
    """
    Read ``NAME=TEXT`` texts as the values of a platform.

    Raises:
        InvalidInputError: One is no such text, or platform.yaml would refuse it.
    """
    found: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not re.fullmatch(NAME, name) or name in BUILT_IN:
            raise InvalidInputError(
                "--value", assignment, "is no NAME=TEXT", hint="for example BASE_DOMAIN=example.org"
            )
        if not re.fullmatch(SAFE, value):
            raise InvalidInputError(
                name, value, "may hold letters, digits and . _ : / - only, because it is baked"
            )
        found[name] = value
    return found


def parse(text: str, *, folder: PurePath, name: str = "platform.yaml") -> PlatformSettings:
    """
    Read ``platform.yaml``; `folder` is where the file lies.

    Raises:
        InvalidInputError: A key or value the schema refuses.
    """
    found = yamltext.load(text, name=name, schema=SCHEMA)
    spec = found["spec"]
    portal = spec["portal"]

    def endpoint(key: str) -> Endpoint:
        found = spec[key]

        def file(name: str) -> PurePath | None:
            return folder / found[name] if name in found else None

        return Endpoint(
            found["url"],
            file("tokenFile"),
            found.get("credentials", "auto"),
            file("caFile"),
            found.get("allowHttp", False),
        )

    def repository(key: str, default: RepoId) -> RepoId:
        owner, _, repo = spec.get(key, str(default)).partition("/")
        return RepoId(owner, repo)

    return PlatformSettings(
        name=found["metadata"]["name"],
        forge=endpoint("forge"),
        portal=endpoint("portal"),
        service=endpoint("service"),
        kubeconfig=folder / spec["cluster"]["kubeconfig"],
        context=spec["cluster"].get("context"),
        pack=repository("packRepository", PACK),
        ledger=repository("ledgerRepository", LEDGER),
        teams=tuple(spec.get("teams", ())),
        profile=read_profile(f"{name}: spec.portal.profile", portal.get("profile", "service")),
        signed_by=portal.get("signedBy"),
        access=access.read_access(spec["service"].get("access", {}), folder=folder),
        portal_public_url=portal.get("publicUrl", ""),
        service_public_url=spec["service"].get("publicUrl", ""),
        registry=spec.get("registry", LOCAL_REGISTRY),
        cluster_name=portal.get("clusterName", CLUSTER_NAME),
        values=spec.get("values", {}),
    )
