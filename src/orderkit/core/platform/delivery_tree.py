"""
Adapt a pack's delivery tree to an installation, and tell which releases its manifests pin.

Pure, before values are baked. Left out are Crossplane where the cluster has it, providers that
nobody asked for, Argo CD's settings where idpbuilder delivers them, and every layer that then has
nothing to deliver, because Argo CD refuses an empty path, and the entries that switch off a tool of
Argo CD that is needed. Added are mirrors, and retries of the newest commit. What is left stays byte
for byte.

The releases are those of packages of Crossplane and charts of Applications. They show a person what
an upgrade changes, so that they need not read the diff.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from ground.errors import InvalidInputError
from ground.names import Files
from ground.objects.kube_objects import APPLICATION, Kind, Manifest, dig, metadata
from orderkit.core.platform.installation import Installation, Mirror, PlatformTarget
from yamlfiles import yaml11
from yamlfiles.edit import Edit, Op, edit
from yamlfiles.manifests import parse_manifests

ROOT = PurePosixPath("gitops", "root.yaml")
APPS = PurePosixPath("gitops", "apps")
PROVIDERS, CONFIGS = PurePosixPath("gitops", "providers"), PurePosixPath("gitops", "config")
CROSSPLANE = PurePosixPath("gitops", "crossplane")
MIRRORS = PROVIDERS / "mirrors.yaml"
SETTINGS = PurePosixPath("gitops", "argocd", "argocd-cm.yaml")
SETTINGS_LAYER = APPS / "argocd-settings.yaml"
WAVE = "argocd.argoproj.io/sync-wave"
ORDERS_POLICY = "orders.orderkit.dev"
"""The policy in ``gitops/apis/orders.yaml`` that holds an order's Application to its kit's kind."""
_MANIFESTS = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Layer:
    """One Application of the app-of-apps."""

    name: str
    wave: int
    file: PurePosixPath
    folder: PurePosixPath | None
    """The path that it delivers from the pack's repository; None: another repository."""
    recurses: bool = False

    def delivers(self, path: PurePosixPath) -> bool:
        """Say whether a file of the pack belongs to this layer."""
        if self.folder is None or path.suffix not in _MANIFESTS:
            return False
        return path.is_relative_to(self.folder) if self.recurses else path.parent == self.folder


def fitted(
    files: Files, installation: Installation, providers: tuple[str, ...] | None
) -> dict[PurePosixPath, bytes]:
    """
    Return the pack's files as this installation gets them. Deterministic.

    Args:
        providers: Folders of ``gitops/providers`` that the pack needs; None: all it has.

    Raises:
        InvalidInputError: An unknown provider, two mirrors of one prefix, or a broken Application.
    """
    kept = _without_providers(files, installation, providers)
    if installation.crossplane.install == "none" or installation.target is PlatformTarget.EMBEDDED:
        kept = {path: data for path, data in kept.items() if not path.is_relative_to(CROSSPLANE)}
    if installation.target is PlatformTarget.IDPBUILDER:
        kept.pop(SETTINGS_LAYER, None)
    if installation.mirrors and installation.target is not PlatformTarget.EMBEDDED:
        kept[MIRRORS] = mirrors_file(installation.mirrors)
    for layer in layers_of(kept):
        if layer.folder is not None and not any(map(layer.delivers, kept)):
            del kept[layer.file]
    if SETTINGS in kept:
        tools = {*installation.argocd.tools, *_tools_in_use(kept, installation.target)}
        kept[SETTINGS] = _with_tools(kept[SETTINGS], tools)
    return {path: _refreshing(path, data) for path, data in kept.items()}


def layers_of(files: Files) -> tuple[Layer, ...]:
    """
    Return the layers of a pack, baked or not, in the order of their waves.

    Raises:
        ManifestError: A file of ``gitops/apps`` is broken.
    """
    root = next(iter(_applications(ROOT, files.get(ROOT, b""))), {})
    pack = dig(root, "spec", "source", "repoURL")
    layers = [
        _layer(path, manifest, pack)
        for path in sorted(files)
        if path.parent == APPS and path.suffix in _MANIFESTS
        for manifest in _applications(path, files[path])
    ]
    return tuple(sorted(layers, key=lambda layer: layer.wave))


def mirrors_file(mirrors: tuple[Mirror, ...]) -> bytes:
    """
    Return the ImageConfigs that make Crossplane pull from mirrors.

    Raises:
        InvalidInputError: Two are for one prefix.
    """
    prefixes = [mirror.prefix for mirror in mirrors]
    for prefix in prefixes:
        if prefixes.count(prefix) > 1:
            raise InvalidInputError("spec.mirrors", prefix, "is the prefix of two mirrors")
    head = "# From spec.mirrors of platform.yaml, by `orderkit platform render`.\n"
    return (head + yaml11.dump_all([_image_config(mirror) for mirror in mirrors])).encode()


def _image_config(mirror: Mirror) -> Manifest:
    name = re.sub(r"[^a-z0-9]+", "-", mirror.prefix.lower()).strip("-")[:50]
    spec: Manifest = {"matchImages": [{"type": "Prefix", "prefix": mirror.prefix}]}
    if mirror.rewrite:
        spec["rewriteImage"] = {"prefix": mirror.rewrite}
    if mirror.pull_secret:
        secret = {"name": mirror.pull_secret}
        spec["registry"] = {"authentication": {"pullSecretRef": secret}}
    return {
        "apiVersion": "pkg.crossplane.io/v1beta1",
        "kind": "ImageConfig",
        "metadata": {"name": f"mirror-{name}", "annotations": {WAVE: "-1"}},
        "spec": spec,
    }


def _without_providers(
    files: Files, installation: Installation, providers: tuple[str, ...] | None
) -> dict[PurePosixPath, bytes]:
    has = {path.parts[2] for path in files if _is_of_provider(path, PROVIDERS)}
    wanted_providers = has if providers is None else {*providers, *installation.providers}
    for name in sorted(wanted_providers - has):
        raise InvalidInputError(
            "spec.providers",
            name,
            "is not a folder of gitops/providers",
            hint=f"the pack has: {', '.join(sorted(has)) or 'none'}",
        )
    left_out = has - wanted_providers
    return {
        path: data
        for path, data in files.items()
        if not (_is_of_provider(path, PROVIDERS) or _is_of_provider(path, CONFIGS))
        or path.parts[2] not in left_out
    }


def _is_of_provider(path: PurePosixPath, folder: PurePosixPath) -> bool:
    return path.is_relative_to(folder) and len(path.parts) > len(folder.parts) + 1


def _applications(path: PurePosixPath, data: bytes) -> Iterator[Manifest]:
    for manifest in parse_manifests(str(path), data):
        kind = Kind.of(manifest)
        if (kind.group, kind.kind) == (APPLICATION.group, APPLICATION.kind):
            yield manifest


def _layer(path: PurePosixPath, manifest: Manifest, pack: str | None) -> Layer:
    source = dig(manifest, "spec", "source", default={})
    ours = source.get("repoURL") == pack and "path" in source
    return Layer(
        metadata(manifest)["name"],
        int(dig(manifest, "metadata", "annotations", WAVE, default=0)),
        path,
        PurePosixPath(source["path"]) if ours else None,
        bool(dig(source, "directory", "recurse", default=False)),
    )


def _tools_in_use(files: Files, target: PlatformTarget) -> Iterator[str]:
    """Yield the tools of the pack's own Applications, and of those that idpbuilder brings along."""
    if target is PlatformTarget.IDPBUILDER:
        yield from ("helm", "kustomize")
    for path, data in files.items():
        if path.parts[0] != "gitops" or path.suffix not in _MANIFESTS or b"Application" not in data:
            continue
        for application in _applications(path, data):
            spec = application.get("spec") or {}
            for source in (spec.get("source") or {}, *(spec.get("sources") or ())):
                yield from (tool for tool in ("helm", "kustomize") if source.get(tool))
                if source.get("chart"):
                    yield "helm"
                if dig(source, "directory", "jsonnet"):
                    yield "jsonnet"


def _with_tools(data: bytes, tools: set[str]) -> bytes:
    """Take out the entries of ``argocd-cm`` that switch off one of these tools."""
    settings = list(parse_manifests(str(SETTINGS), data))
    entries = dig(settings[0], "data", default={}) if len(settings) == 1 else {}
    keys = (f"{tool}.enable" for tool in sorted(tools))
    edits = [Edit(("data", key), Op.UNSET) for key in keys if key in entries]
    return edit(data, edits, name=str(SETTINGS)) if edits else data


def _refreshing(path: PurePosixPath, data: bytes) -> bytes:
    """Let retries use the newest commit."""
    # a cheap look first: few files of a pack are Applications that retry
    if path.parts[0] != "gitops" or path.suffix not in _MANIFESTS or b"\n    retry:" not in data:
        return data
    manifests = list(_applications(path, data))
    if len(manifests) != 1 or not dig(manifests[0], "spec", "syncPolicy", "retry"):
        return data
    steps = ("spec", "syncPolicy", "retry", "refresh")
    return edit(data, [Edit(steps, Op.SET, value=True)], name=str(path))


_PACKAGES = ("Provider", "Function", "Configuration")


@dataclass(frozen=True, slots=True)
class VersionMove:
    """A pinned release before and after; empty where it is not pinned."""

    kind: str
    name: str
    before: str
    after: str

    def __str__(self) -> str:
        if not self.before:
            return f"{self.kind} {self.name} {self.after} is new"
        if not self.after:
            return f"{self.kind} {self.name} {self.before} goes"
        return f"{self.kind} {self.name} {self.before} → {self.after}"


def moves(before: Files, after: Files) -> tuple[VersionMove, ...]:
    """
    Return the pins that differ between two sets of files, sorted.

    Raises:
        ManifestError: A file is not a stream of Kubernetes objects.
    """
    old, new = _pins(before), _pins(after)
    return tuple(
        VersionMove(*key, old.get(key, ""), new.get(key, ""))
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    )


def _pins(files: Files) -> dict[tuple[str, str], str]:
    pins = {}
    for path, data in files.items():
        for manifest in parse_manifests(str(path), data):
            pin = _pin(manifest)
            if pin:
                pins[manifest["kind"], metadata(manifest).get("name", "")] = pin
    return pins


def _pin(manifest: Manifest) -> str:
    """Return the release that an object pins: a tag, a digest or a chart's version."""
    if manifest["kind"] in _PACKAGES:
        package = str(dig(manifest, "spec", "package", default=""))
        _, at, digest = package.partition("@")
        return digest if at else package.rpartition(":")[2]
    chart = dig(manifest, "spec", "source", "chart")
    return str(dig(manifest, "spec", "source", "targetRevision", default="")) if chart else ""
