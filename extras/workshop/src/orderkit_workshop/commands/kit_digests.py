"""``orderkit kit digests``: pin images by digest, where their releases are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ground.errors import EXIT_DIFFERS, NotFoundError, UsageError
from orderkit.cli.options import PathOption, json_option
from orderkit.cli.output import emit_json, say
from orderkit_workshop.commands.pack_option import pack_option

if TYPE_CHECKING:
    from orderkit_workshop.folders.local_pack import LocalPack

_USE = re.compile(
    r"__ORDERKIT_REGISTRY__/(?P<path>[^\s:]+):__ORDERKIT_VERSION_(?P<pin>[A-Z0-9_]+)__"
)
_FROM = re.compile(r"^FROM +(?P<path>[^\s:@]+):(?P<tag>[^\s@]+)(?P<digest>@\S+)?", re.MULTILINE)


class _Image(NamedTuple):
    """An image without a digest: the text that names its tag, and what joins a digest to it."""

    path: str
    tag: str
    text: str
    joint: str = "@"


@click.command("digests")
@click.argument("files", nargs=-1, metavar="[CONTAINERFILE]...", type=PathOption())
@pack_option
@click.option(
    "--registry", default="", envvar="ORDERKIT_REGISTRY", metavar="HOST", help="Where to ask."
)
@click.option(
    "--ca-file", type=PathOption(), metavar="FILE", help="A CA certificate to trust instead."
)
@click.option("--check", is_flag=True, help="Write nothing; exit 10 if a digest is missing.")
@json_option
def kit_digests(
    files: tuple[Path, ...],
    pack: LocalPack,
    registry: str,
    ca_file: Path | None,
    check: bool,
    as_json: bool,
) -> int:
    """
    Write the digests of images behind their tags, as a registry has them now.

    In pack.yaml, v1.2.3 becomes v1.2.3@sha256:…; in a Containerfile FROM name:tag becomes
    FROM name:tag@sha256:…, and ARG DIGEST becomes ARG DIGEST=sha256:… where FROM uses it. A tag can
    be moved to other content, a digest cannot. Credentials are those of Docker's configuration.

    Example: orderkit kit digests --registry registry.example.org
    """
    if not (check or registry):
        raise UsageError("--registry says where to ask", hint="--check only lists what lacks one")
    found = [(file, _images(file)) for file in files or (pack.root / "pack.yaml",)]
    lacking = [f"{file}: {image.path}:{image.tag}" for file, images in found for image in images]
    if not check:
        pinned = [(file, _pinned(file, images, registry, ca_file)) for file, images in found]
        for file, text in pinned:  # nothing is written before every digest is known
            file.write_text(text, encoding="utf-8")
    if as_json:
        emit_json("orderkit.kit-digests/v1", {"images": lacking, "written": not check})
    else:
        say("\n".join(lacking) or "every release has its digest")
    return EXIT_DIFFERS if check and lacking else 0


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise NotFoundError(
            f"{file} cannot be read ({error.strerror})",
            hint="orderkit kit digests --registry HOST Containerfile",
        ) from error


def _pinned(file: Path, images: list[_Image], registry: str, ca_file: Path | None) -> str:
    """Return the text of a file with every digest in it."""
    from orderkit_workshop.registry.registry_client import RegistryClient, docker_config_file

    text = _text(file)
    for image in images:
        client = RegistryClient(
            registry, image.path, config_file=docker_config_file(), ca_file=ca_file
        )
        digest, _ = client.manifest(image.tag)
        text = text.replace(image.text, f"{image.text}{image.joint}{digest}")
    return text


def _images(file: Path) -> list[_Image]:
    return list(_of_pack(file) if file.name == "pack.yaml" else _of_containerfile(_text(file)))


def _of_containerfile(text: str) -> Iterator[_Image]:
    for found in {match[0]: match for match in _FROM.finditer(text)}.values():
        path, tag = found["path"], found["tag"]
        argument = re.fullmatch(r"@\$\{(\w+)\}", found["digest"] or "")
        if not found["digest"]:
            yield _Image(path, tag, f"{path}:{tag}")
        elif argument and re.search(rf"^ARG {argument[1]}$", text, re.MULTILINE):
            yield _Image(path, tag, f"ARG {argument[1]}", "=")


def _of_pack(file: Path) -> Iterator[_Image]:
    text = _text(file)
    paths = {
        match["pin"].lower().replace("_", "-"): match["path"]
        for manifest in sorted((file.parent / "gitops").rglob("*.yaml"))
        for match in _USE.finditer(_text(manifest))
    }
    for pin, path in sorted(paths.items()):
        pattern = rf"^ +{re.escape(pin)}: +(?P<tag>v?[0-9][^\s@]*)$"
        line = re.search(pattern, text, re.MULTILINE)
        if line:
            yield _Image(path, line["tag"], line[0])
