"""
``platform.yaml``: where one platform's forge, cluster, portal and service are.

It holds addresses and the *files* that hold credentials, never a credential. Relative paths
are relative to the file itself. ``orderkit up`` writes one into its state folder.

`redacted` is ``platform.yaml`` for people outside of the platform, without what may be a secret.
Pure. The file names files of secrets and has none itself, but addresses may: of a webhook, or with
a password before the host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from msgspec import Meta, field

from compositions.function_processes import FunctionAddresses
from ground.errors import InvalidInputError
from ground.names import RepoId
from ground.secrets import MASK
from ground.shapes import StrictShape, changed
from orderkit.core.documents import read_document, write_document
from orderkit.core.platform.baking import BUILT_IN, NAME, SAFE, VERSION
from orderkit.core.platform.forge_kinds import KINDS, ForgeKind, ForgePages
from orderkit.core.platform.installation import Installation
from orderkit.core.platform.notification_settings import NotificationSettings
from orderkit.core.platform.service_access import AccessSettings, ServiceInstall, Text, Url
from orderkit.core.portal.profile import Profile
from softwaretemplates.size_limit import MIB, SIZE_LIMIT
from yamlfiles import yaml11

CLUSTER_NAME = "local"
"""The portal's default name for its own cluster."""
LOCAL_REGISTRY = "registry.local"
"""Placeholder for the registry of a platform's function packages."""
PACK, LEDGER = RepoId("platform", "pack"), RepoId("platform", "ledger")
"""Default names of Orderkit's two repositories on the forge."""


_PART = "[A-Za-z0-9._-]+"
_Repository = Annotated[str, Meta(pattern=f"^({_PART}/)+{_PART}$")]
_Baked = Annotated[str, Meta(pattern=f"^{SAFE}$")]
_OWN_NAMES = {
    "propertyNames": {
        "pattern": f"^{NAME}$",
        "not": {"anyOf": [{"enum": list(BUILT_IN)}, {"pattern": f"^{VERSION}"}]},
    }
}


class Endpoint(StrictShape, frozen=True):
    """An HTTP service."""

    url: Url
    """Without a final slash."""
    token_file: PurePath | None = None
    """The file with its token."""


class ForgeApp(StrictShape, frozen=True):
    """A GitHub App."""

    id: Annotated[int, Meta(ge=1)]
    private_key_file: PurePath
    """PEM, as GitHub hands it out once."""
    installation: Annotated[int, Meta(ge=1)] | None = None
    """None: found for each organisation."""


class ForgeSettings(Endpoint, frozen=True):
    """The forge, whose credentials may come from elsewhere."""

    credentials: Literal["auto", "environment", "file", "idpbuilder", "git"] = "auto"
    """The source of its credentials; auto: the first source that has some."""
    ca_file: PurePath | None = None
    """Certificates to trust instead of the usual ones."""
    allow_http: bool = False
    """Credentials may go over plain HTTP to another machine: a lab."""
    private: bool = False
    """The platform's repositories are private; Argo CD is given a credential."""
    read_token_file: PurePath | None = None
    """Argo CD's token for pack and ledger: it may read them; None: ours."""
    team_token_folder: PurePath | None = None
    """Argo CD's token for each team, in a file of its name; None: made on the forge."""
    adopted: tuple[Text, ...] = ()
    """Who may own organisations and repositories besides our account."""
    kind: ForgeKind = "gitea"
    group: Annotated[str, Meta(pattern=f"^({_PART}(/{_PART})*)?$")] = ""
    """The full path of GitLab's group that holds all of the platform; empty: GitLab's top."""
    api_url: Url = ""
    """Empty: follows from `url`."""
    app: ForgeApp | None = None
    """As which we act on GitHub, instead of a token."""
    argocd_app: ForgeApp | None = field(default=None, name="argocdApp")
    """As which Argo CD reads on GitHub: it may read contents, and nothing else."""

    def check(self) -> None:
        """
        Check what the fields say together.

        Raises:
            InvalidInputError: A GitHub App or a group on another forge.
        """
        if self.group and self.kind != "gitlab":
            raise InvalidInputError(
                "forge.group",
                self.group,
                f"is for GitLab, and forge.kind is {self.kind}",
                hint="leave forge.group out, or set forge.kind: gitlab",
            )
        if self.group and RepoId.parse(f"{self.group}/x") is None:
            raise InvalidInputError(
                "forge.group",
                self.group,
                "is no path of a group",
                hint="forge: {group: company/orders}",
            )
        for name, app in (("app", self.app), ("argocdApp", self.argocd_app)):
            if app is not None and self.kind != "github":
                raise InvalidInputError(
                    f"forge.{name}",
                    str(app.id),
                    f"is for GitHub, and forge.kind is {self.kind}",
                    hint=f"leave forge.{name} out, or set forge.kind: github",
                )

    @property
    def address(self) -> str:
        """What the addresses of all repositories begin with."""
        return f"{self.url}/{self.group}" if self.group else self.url

    @property
    def pages(self) -> ForgePages:
        """Where the forge shows files and commits."""
        return KINDS[self.kind].pages


class PortalSettings(Endpoint, frozen=True):
    """The portal."""

    profile: Profile = Profile.SERVICE
    """How it runs the pack's templates."""
    signed_by: Url = ""
    """The Backstage whose signatures prove the requester; empty: requesters are unverified."""
    people_from: Annotated[tuple[Text, ...], Meta(min_length=1)] = ()
    """Locations of the catalog whose Users are believed; empty: files of the pack on ``main``."""
    public_url: Url = ""
    """For browsers; empty: the same as for this process."""
    cluster_name: _Baked = CLUSTER_NAME
    """What the portal calls the cluster; only the profile ``job`` asks."""


class ServiceSettings(Endpoint, frozen=True):
    """Orderkit's own service."""

    public_url: Url = ""
    """For browsers; empty: the same as for this process."""
    registers: bool = False
    """Every order enters the ledger through the service, those of the command line too."""
    signing_key_file: PurePath | None = None
    """The key that signs the commits of this machine; None: they are not signed."""
    access: AccessSettings = AccessSettings()
    """Who else may call it, and what groups may do."""
    install: ServiceInstall | None = None
    """How it is installed in the cluster; None: it runs elsewhere."""


class ClusterSettings(StrictShape, frozen=True):
    """The cluster with Argo CD and Crossplane."""

    kubeconfig: PurePath
    context: str = ""
    """Empty: the file's own."""


class ProbeOrder(StrictShape, frozen=True):
    """The order that bootstrap places at its end. Empty: the first example of the pack's kits."""

    kit: Text = ""
    values: Mapping[str, Any] = {}


class PlanSettings(StrictShape, frozen=True):
    """How plans are made."""

    functions: FunctionAddresses = {}  # noqa: RUF012  msgspec copies it
    """Composition functions that plans may call as running processes."""


class TemplateSettings(StrictShape, frozen=True):
    """What templates may do."""

    size_mib: Annotated[int, Meta(ge=1, le=4096)] = field(default=SIZE_LIMIT // MIB, name="sizeMiB")
    """How much one run may hold in memory."""


class PlatformSettings(Installation, frozen=True, kw_only=True):
    """One platform, as platform.yaml describes it."""

    name: str
    forge: ForgeSettings
    cluster: ClusterSettings
    portal: PortalSettings = PortalSettings(url="")
    """Without an address: this platform has none."""
    service: ServiceSettings = ServiceSettings(url="")
    """Without an address: this platform has none."""
    pack_repository: _Repository = str(PACK)
    ledger_repository: _Repository = str(LEDGER)
    registry: str = LOCAL_REGISTRY
    teams: tuple[str, ...] = ()
    values: Annotated[Mapping[str, _Baked], Meta(extra_json_schema=_OWN_NAMES)] = {}
    """Values for the pack's hidden fields, by their names in kit.yaml."""
    probe: ProbeOrder = ProbeOrder()
    plans: PlanSettings = PlanSettings()
    templates: TemplateSettings = TemplateSettings()
    notifications: NotificationSettings = NotificationSettings()
    """Who is notified about orders, and how."""

    def to_yaml(self) -> str:
        """Write it as ``platform.yaml``, paths as they are."""
        return write_document("Platform", self, named="name")

    def on(self, installation: Installation) -> Self:
        """Return the same for another cluster."""
        fields = Installation.__struct_fields__
        return changed(self, **{name: getattr(installation, name) for name in fields})

    @property
    def pack(self) -> RepoId:
        """The repository with the pack."""
        return _repository("packRepository", self.pack_repository)

    @property
    def ledger(self) -> RepoId:
        """The repository with the ledger."""
        return _repository("ledgerRepository", self.ledger_repository)

    @property
    def pack_folder_url(self) -> str:
        """Where the forge shows the files of the pack, with a final slash."""
        return self.forge.pages.folder(f"{self.forge.address}/{self.pack}", "main")

    @property
    def portal_address(self) -> str:
        """The portal as a browser reaches it."""
        return self.portal.public_url or self.portal.signed_by or self.portal.url

    @property
    def service_address(self) -> str:
        """The service as a browser reaches it."""
        return self.service.public_url or self.service.url


def _repository(field: str, text: str) -> RepoId:
    repo = RepoId.parse(text)
    if repo is None:
        raise InvalidInputError(field, text, "names no repository", hint="write OWNER/NAME")
    return repo


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
                name,
                value,
                "may hold letters, digits and . _ : / - only, because it is baked",
                hint=f"change {name} in platform.yaml",
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
    settings = read_document(
        PlatformSettings,
        text,
        name=name,
        kinds=("Platform",),
        named="name",
        path_of=lambda path: _path(folder, path, home),
    )
    for field_name, endpoint in (("portal", settings.portal), ("service", settings.service)):
        if endpoint.url and endpoint.token_file is None:
            raise InvalidInputError(
                f"{name}: spec.{field_name}.tokenFile",
                None,
                "is missing",
                hint=f"name the file with the token of {endpoint.url}",
            )
    settings.forge.check()
    _check_forge(settings)
    for repo in (settings.pack, settings.ledger):
        if "/" in repo.owner and settings.forge.kind != "gitlab":
            raise InvalidInputError(
                "repository",
                str(repo),
                f"has more than two parts, and {settings.forge.kind} two",
                hint="OWNER/REPOSITORY, for example ae86/garage-ae86",
            )
    settings.service.access.check()
    settings.notifications.check()
    _check_install(settings)
    return settings


def _check_forge(settings: PlatformSettings) -> None:
    """
    Refuse what does not work on the kind of forge that is named.

    Raises:
        InvalidInputError: It does not.
    """
    kind = settings.forge.kind
    if kind == "gitea":
        return
    if settings.portal.profile is Profile.NATURAL:
        raise InvalidInputError(
            "portal.profile",
            str(settings.portal.profile),
            f"does not work on {kind} yet: its templates publish to Gitea",
            hint="portal: {profile: service}",
        )
    if settings.forge.credentials == "idpbuilder":
        raise InvalidInputError(
            "forge.credentials",
            "idpbuilder",
            f"are those of a Gitea, and forge.kind is {kind}",
            hint="set forge.tokenFile, or forge.kind: gitea",
        )


def _check_install(settings: PlatformSettings) -> None:
    """
    Refuse settings with which an installed service could not work.

    Raises:
        InvalidInputError: The setting that is missing or contradicts another.
    """
    install, service, forge = settings.service.install, settings.service, settings.forge
    if install is None:
        return
    field_name = "service.install"
    if settings.target == "embedded":
        raise InvalidInputError(
            field_name,
            "embedded",
            "needs a cluster, and 'orderkit up' has the service built in",
            hint="leave service.install out",
        )
    if forge.token_file is None and forge.app is None:
        raise InvalidInputError(
            "forge.tokenFile",
            None,
            f"is missing, and {field_name} needs it",
            hint="Pods have no environment and no git: name a file with the token, or forge.app",
        )
    route = install.route
    if route.kind != "none" and not settings.service_address.startswith("https://"):
        raise InvalidInputError(
            "service.publicUrl",
            settings.service_address,
            f"is not https, and {field_name}.route is an {route.kind}",
            hint="give the address as browsers reach it, or route: {kind: none}",
        )
    if (route.kind == "HTTPRoute") != bool(route.gateway):
        rule = "is missing" if route.kind == "HTTPRoute" else f"is not for an {route.kind}"
        raise InvalidInputError(
            f"{field_name}.route.gateway", route.gateway, rule, hint="NAMESPACE/NAME of the Gateway"
        )
    if install.monitoring and service.access.tokens_file is None:
        raise InvalidInputError(
            "service.access.tokensFile",
            None,
            f"is missing, and {field_name}.monitoring needs a token for Prometheus",
            hint="name a file, then: orderkit access add prometheus --everywhere --right observe",
        )


def _path(folder: PurePath, text: str, home: PurePath | None) -> PurePath:
    """Return a file that platform.yaml names."""
    return home / text[2:] if home and text.startswith("~/") else folder / text


_SECRET_KEY = re.compile(r"(token|secret|password|key|credential)s?\Z", re.IGNORECASE)
_CHANNEL = ("spec", "notifications")


def redacted(text: str, *, name: str) -> str:
    """
    Return the file with addresses cut to scheme and host where they may be secret.

    Raises:
        InvalidInputError: It is no YAML.
    """
    return yaml11.dump(_cut(yaml11.load(text, name=name, schema={"type": "object"}), ()))


def _cut(value: Any, steps: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {
            key: MASK
            if _SECRET_KEY.search(str(key)) and isinstance(part, str)
            else _cut(part, (*steps, str(key)))
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_cut(part, steps) for part in value]
    return _address(value, steps) if isinstance(value, str) and "://" in value else value


def _address(text: str, steps: tuple[str, ...]) -> str:
    parts = urlsplit(text)
    host = parts.netloc.rpartition("@")[2]
    hides = steps[:2] == _CHANNEL or parts.query or "@" in parts.netloc
    rest = f"/{MASK}" if hides and (parts.path.strip("/") or parts.query) else parts.path
    return f"{parts.scheme}://{host}{rest}"
