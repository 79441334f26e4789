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

from compositions import function_processes
from compositions.function_processes import FunctionProcess, processes_spec, read_processes
from ground.errors import InvalidInputError
from ground.names import RepoId
from orderkit.core.platform import notification_settings, service_access
from orderkit.core.platform.baking import BUILT_IN, NAME, SAFE, VERSION
from orderkit.core.platform.installation import SCHEMAS, Installation, read_installation
from orderkit.core.platform.notification_settings import NotificationSettings, read_notifications
from orderkit.core.platform.service_access import AccessSettings
from orderkit.core.portal.profile import Profile, read_profile
from softwaretemplates.size_limit import MIB, SIZE_LIMIT
from yamlfiles import yaml11
from yamlfiles.documents import API_VERSION

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
        "peopleFrom": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
        "publicUrl": _URL,
        "clusterName": {"type": "string", "pattern": f"^{SAFE}$"},
    },
}
_SERVICE = {
    **_ENDPOINT,
    "properties": {
        **_ENDPOINT["properties"],
        "publicUrl": _URL,
        "registers": {"type": "boolean"},
        "signingKeyFile": {"type": "string", "minLength": 1},
        "access": service_access.SCHEMA,
    },
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
        "private": {"type": "boolean"},
        "readTokenFile": {"type": "string", "minLength": 1},
        "teamTokenFolder": {"type": "string", "minLength": 1},
        "adopted": {"type": "array", "items": {"type": "string", "minLength": 1}},
    },
}
_PROBE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "kit": {"type": "string", "minLength": 1},
        "values": {"type": "object"},
    },
}
_REPOSITORY = {"type": "string", "pattern": r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$"}
_VALUES = {
    "type": "object",
    "propertyNames": {
        "pattern": f"^{NAME}$",
        "not": {"anyOf": [{"enum": list(BUILT_IN)}, {"pattern": f"^{VERSION}"}]},
    },
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
                **SCHEMAS,
                "probe": _PROBE,
                "plans": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"functions": function_processes.SCHEMA},
                },
                "templates": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"sizeMiB": {"type": "integer", "minimum": 1, "maximum": 4096}},
                },
                "notifications": notification_settings.SCHEMA,
            },
        },
    },
}


CLUSTER_NAME = "local"
"""The portal's default name for its own cluster."""
LOCAL_REGISTRY = "registry.local"
"""Placeholder for the registry of a platform's function packages."""
PACK, LEDGER = RepoId("platform", "pack"), RepoId("platform", "ledger")
"""Default names of Orderkit's two repositories on the forge."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An HTTP service: base URL without a final slash, and the file with its token."""

    url: str
    token_file: PurePath | None
    """None only for the forge, whose credentials may come from elsewhere."""
    credentials: Literal["auto", "environment", "file", "idpbuilder", "git"] = "auto"
    """The source of the forge's credentials; auto: the first source that has some."""
    ca_file: PurePath | None = None
    """Certificates to trust instead of the usual ones (the forge's)."""
    allow_http: bool = False
    """Credentials may go over plain HTTP to another machine: a lab (the forge's)."""
    private: bool = False
    """The platform's repositories are private; Argo CD is given a credential (the forge's)."""
    read_token_file: PurePath | None = None
    """Argo CD's token for pack and ledger: it may read them; None: ours (the forge's)."""
    team_token_folder: PurePath | None = None
    """Argo CD's token for each team, in a file of its name; None: made on the forge."""
    adopted: Sequence[str] = ()
    """Who may own organisations and repositories besides our account (the forge's)."""

    def to_spec(self) -> dict[str, Any]:
        """Return it as in platform.yaml, without defaults."""
        spec = {
            "tokenFile": str(self.token_file or ""),
            "credentials": "" if self.credentials == "auto" else self.credentials,
            "caFile": str(self.ca_file or ""),
            "allowHttp": self.allow_http,
            "private": self.private,
            "readTokenFile": str(self.read_token_file or ""),
            "teamTokenFolder": str(self.team_token_folder or ""),
            "adopted": list(self.adopted),
        }
        return {"url": self.url, **{key: value for key, value in spec.items() if value}}


@dataclass(frozen=True, slots=True)
class ProbeOrder:
    """The order that bootstrap places at its end. Empty: the first example of the pack's kits."""

    kit: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


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
    """The Backstage whose signatures prove the requester; None: requesters are unverified."""
    people_from: Sequence[str] = ()
    """Locations of the catalog whose Users are believed; empty: files of the pack on ``main``."""
    access: AccessSettings = field(default_factory=AccessSettings)
    """Who else may call the service, and what groups may do."""
    portal_public_url: str = ""
    service_public_url: str = ""
    """Addresses for browsers; empty: the same as for this process."""
    service_registers: bool = False
    """Every order enters the ledger through the service, those of the command line too."""
    signing_key_file: PurePath | None = None
    """The key that signs the commits of this machine; None: they are not signed."""
    registry: str = LOCAL_REGISTRY
    cluster_name: str = CLUSTER_NAME
    """What the portal calls the cluster; only the profile ``job`` asks."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Values for the pack's hidden fields, by their names in kit.yaml."""
    installation: Installation = field(default_factory=Installation)
    """The cluster the pack is delivered to."""
    probe: ProbeOrder = field(default_factory=ProbeOrder)
    functions: Sequence[FunctionProcess] = ()
    """Composition functions that plans may call as running processes."""
    size_limit: int = SIZE_LIMIT
    """Most bytes that one run of a template may hold in memory."""
    notifications: NotificationSettings = field(default_factory=NotificationSettings)
    """Who is notified about orders, and how."""

    def to_yaml(self) -> str:
        """Write it as ``platform.yaml``, paths as they are."""
        cluster = {"kubeconfig": str(self.kubeconfig)}
        if self.context:
            cluster["context"] = self.context
        portal = {**self.portal.to_spec(), "profile": str(self.profile)}
        if self.signed_by:
            portal["signedBy"] = self.signed_by
        if self.people_from:
            portal["peopleFrom"] = list(self.people_from)
        if self.cluster_name != CLUSTER_NAME:
            portal["clusterName"] = self.cluster_name
        if self.portal_public_url:
            portal["publicUrl"] = self.portal_public_url
        return yaml11.dump(
            {
                "apiVersion": API_VERSION,
                "kind": "Platform",
                "metadata": {"name": self.name},
                "spec": {
                    "forge": self.forge.to_spec(),
                    "cluster": cluster,
                    "portal": portal,
                    "service": self._service(self.service.to_spec()),
                    "packRepository": str(self.pack),
                    "ledgerRepository": str(self.ledger),
                    "registry": self.registry,
                    "teams": list(self.teams),
                    **({"values": dict(self.values)} if self.values else {}),
                    **self.installation.to_spec(),
                    **self._probe(),
                    **self._plans(),
                    **self._templates(),
                    **self._notifications(),
                },
            }
        )

    def _probe(self) -> dict[str, Any]:
        probe = {"kit": self.probe.kit, "values": dict(self.probe.values)}
        set_values = {key: value for key, value in probe.items() if value}
        return {"probe": set_values} if set_values else {}

    def _plans(self) -> dict[str, Any]:
        functions = processes_spec(self.functions)
        return {"plans": {"functions": functions}} if functions else {}

    def _templates(self) -> dict[str, Any]:
        size = self.size_limit // MIB
        return {} if self.size_limit == SIZE_LIMIT else {"templates": {"sizeMiB": size}}

    def _notifications(self) -> dict[str, Any]:
        spec = self.notifications.spec
        return {"notifications": dict(spec)} if spec else {}

    def _service(self, spec: dict[str, Any]) -> dict[str, Any]:
        if self.service_public_url:
            spec["publicUrl"] = self.service_public_url
        if self.service_registers:
            spec["registers"] = True
        if self.signing_key_file is not None:
            spec["signingKeyFile"] = str(self.signing_key_file)
        if access := self.access.to_spec():
            spec["access"] = access
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
    values: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        is_own_name = (
            re.fullmatch(NAME, name) and name not in BUILT_IN and not name.startswith(VERSION)
        )
        if not equals or not is_own_name:
            raise InvalidInputError(
                "--value",
                assignment,
                "is not a NAME=TEXT",
                hint="for example BASE_DOMAIN=example.org",
            )
        if not re.fullmatch(SAFE, value):
            raise InvalidInputError(
                name, value, "may hold letters, digits and . _ : / - only, because it is baked"
            )
        values[name] = value
    return values


def parse(
    text: str, *, folder: PurePath, name: str = "platform.yaml", home: PurePath | None = None
) -> PlatformSettings:
    """
    Read ``platform.yaml``; `folder` is where the file lies.

    Args:
        home: What ``~/`` at the beginning of a path means; None: nothing special.

    Raises:
        InvalidInputError: A key or value the schema refuses.
    """
    document = yaml11.load(text, name=name, schema=SCHEMA)
    spec, portal = document["spec"], document["spec"]["portal"]

    def endpoint(key: str) -> Endpoint:
        return _endpoint(spec[key], folder, home)

    def repository(key: str, default: RepoId) -> RepoId:
        owner, _, repo = spec.get(key, str(default)).partition("/")
        return RepoId(owner, repo)

    return PlatformSettings(
        name=document["metadata"]["name"],
        forge=_endpoint(spec["forge"], folder, home),
        portal=_endpoint(spec["portal"], folder, home),
        service=_endpoint(spec["service"], folder, home),
        kubeconfig=_path(folder, spec["cluster"]["kubeconfig"], home),
        context=spec["cluster"].get("context"),
        pack=repository("packRepository", PACK),
        ledger=repository("ledgerRepository", LEDGER),
        teams=tuple(spec.get("teams", ())),
        profile=read_profile(f"{name}: spec.portal.profile", portal.get("profile", "service")),
        signed_by=portal.get("signedBy"),
        people_from=tuple(portal.get("peopleFrom", ())),
        access=service_access.read_access(spec["service"].get("access", {}), folder=folder),
        portal_public_url=portal.get("publicUrl", ""),
        service_public_url=spec["service"].get("publicUrl", ""),
        service_registers=spec["service"].get("registers", False),
        signing_key_file=_file(spec["service"], "signingKeyFile", folder, home),
        registry=spec.get("registry", LOCAL_REGISTRY),
        cluster_name=portal.get("clusterName", CLUSTER_NAME),
        values=spec.get("values", {}),
        installation=read_installation(spec),
        probe=ProbeOrder(**spec.get("probe", {})),
        functions=read_processes(
            spec.get("plans", {}).get("functions", {}), lambda text: _path(folder, text, home)
        ),
        size_limit=spec.get("templates", {}).get("sizeMiB", SIZE_LIMIT // MIB) * MIB,
        notifications=read_notifications(
            spec.get("notifications", {}), lambda text: _path(folder, text, home)
        ),
    )


def _endpoint(entry: Mapping[str, Any], folder: PurePath, home: PurePath | None) -> Endpoint:
    return Endpoint(
        entry["url"],
        _file(entry, "tokenFile", folder, home),
        entry.get("credentials", "auto"),
        _file(entry, "caFile", folder, home),
        entry.get("allowHttp", False),
        entry.get("private", False),
        _file(entry, "readTokenFile", folder, home),
        _file(entry, "teamTokenFolder", folder, home),
        tuple(entry.get("adopted", ())),
    )


def _file(
    entry: Mapping[str, Any], key: str, folder: PurePath, home: PurePath | None
) -> PurePath | None:
    return _path(folder, entry[key], home) if key in entry else None


def _path(folder: PurePath, text: str, home: PurePath | None) -> PurePath:
    """Return a file that platform.yaml names."""
    return home / text[2:] if home and text.startswith("~/") else folder / text
