"""``orderkit kit schemas``: CRDs of providers for a pack's ``schemas/``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ground.errors import EXIT_DIFFERS
from orderkit.cli.options import PathOption, json_option
from orderkit.cli.output import say
from orderkit_workshop.commands.pack_option import pack_option

if TYPE_CHECKING:
    from pathlib import Path

    from orderkit_workshop.folders.local_pack import LocalPack
    from orderkit_workshop.stories.provider_schemas import CrdFolder, SchemasAdded

_SUFFIXES = {".yaml", ".yml", ".json"}
_FILES_MAX = 5_000


@click.group("schemas")
def kit_schemas() -> None:
    """
    Copy CRDs of providers into a pack, so that composed objects are checked.

    Example: orderkit kit schemas check
    """


@kit_schemas.command("add")
@click.argument("provider", required=False, default="", metavar="[PROVIDER@VERSION]")
@pack_option
@click.option(
    "--from", "folder", type=PathOption(), metavar="DIR", help="Read CRDs from files instead."
)
@click.option(
    "--kinds",
    multiple=True,
    metavar="KIND[,KIND]",
    help="Kinds to copy, such as Bucket.s3.aws.m.upbound.io. Default: what the kits compose.",
)
@click.option(
    "--registry",
    default="",
    envvar="ORDERKIT_REGISTRY",
    metavar="HOST",
    help="Registry of a PROVIDER without a host.",
)
@click.option(
    "--ca-file",
    type=PathOption(),
    metavar="FILE",
    help="A CA certificate to trust instead of those of this machine.",
)
@click.option("--descriptions", is_flag=True, help="Keep the descriptions of fields.")
@json_option
def schemas_add(
    provider: str,
    pack: LocalPack,
    folder: Path | None,
    kinds: tuple[str, ...],
    registry: str,
    ca_file: Path | None,
    descriptions: bool,
    as_json: bool,
) -> None:
    """
    Copy CRDs from a provider's package into schemas/, and record its digest there.

    PROVIDER is [HOST/]PATH, or the name of a package that the pack's gitops/ delivers; its version
    is then the one of pack.yaml. Credentials are those of Docker's configuration.

    Example: orderkit kit schemas add crossplane-contrib/provider-aws-s3@v2.6.0 --registry HOST
    """
    from orderkit_workshop.registry import RegistryPackages
    from orderkit_workshop.stories.provider_schemas import SchemasRequest, add_schemas

    if bool(provider) == bool(folder):
        raise click.UsageError("give PROVIDER@VERSION or --from DIR")
    request = SchemasRequest(
        pack=pack,
        provider=provider,
        folder=_crd_folder(folder) if folder else None,
        kinds=[kind.strip() for text in kinds for kind in text.split(",") if kind.strip()],
        registry=registry,
        descriptions=descriptions,
    )
    _show(add_schemas(request, RegistryPackages(ca_file)), as_json)


def _crd_folder(folder: Path) -> CrdFolder:
    from ground.errors import InvalidInputError
    from orderkit.adapters.folders.template_folder import read_limited
    from orderkit_workshop.stories.provider_schemas import CrdFolder

    if not folder.is_dir():
        raise InvalidInputError(
            "--from", str(folder), "is not a folder", hint="--from DIR, a folder with CRDs as YAML"
        )
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in _SUFFIXES]
    if not files or len(files) > _FILES_MAX:
        raise InvalidInputError(
            "--from",
            str(folder),
            f"has {len(files)} YAML files; 1 to {_FILES_MAX} are expected",
            hint="--from DIR, a folder with the CRDs of one provider",
        )
    data = {str(path.relative_to(folder)): read_limited(path, field="--from") for path in files}
    name = str(folder) if not folder.is_absolute() else folder.name
    return CrdFolder(name, data)


def _show(added: SchemasAdded, as_json: bool) -> None:
    from orderkit.cli.output import emit_json

    if as_json:
        report = {
            "source": added.source.name,
            "digest": added.source.digest,
            "written": list(added.updated),
            "unchanged": list(added.unchanged),
            "kept": list(added.kept),
            "notServed": list(added.not_served),
            "missing": list(added.missing),
        }
        emit_json("orderkit.kit-schemas-added/v1", report)
        return
    for word, paths in (("written", added.updated), ("same", added.unchanged)):
        for path in paths:
            say(f"{word:<8} {path}")
    for path in added.kept:
        say(f"kept     {path}: it was written or edited by hand")
    say(f"{added.source.name} {added.source.digest}".rstrip())
    for text in added.not_served:
        say(f"  note  not served: {text}")
    for text in added.missing:
        say(f"  note  still no schema: {text}")


@kit_schemas.command("check")
@pack_option
@json_option
def schemas_check(pack: LocalPack, as_json: bool) -> int:
    """
    Compare schemas/ with its record, and list composed kinds without a schema.

    Exit code 10: a file differs from what was copied, or a kind has no schema.

    Example: orderkit kit schemas check --pack packs/agents
    """
    from orderkit.cli.output import emit_json
    from orderkit_workshop.stories.provider_schemas import check_schemas

    report = check_schemas(pack)
    if as_json:
        emit_json(
            "orderkit.kit-schemas/v1",
            {
                "sources": [
                    {"name": source.name, "digest": source.digest, "files": sorted(source.files)}
                    for source in report.sources
                ],
                "changed": dict(report.changed),
                "missing": list(report.missing),
            },
        )
    else:
        for path, problem in report.changed.items():
            say(f"{path}: {problem}")
        for text in report.missing:
            say(f"no schema: {text}")
        if not (report.changed or report.missing):
            say("every composed kind has a schema, and every file is as it was copied")
    return EXIT_DIFFERS if report.changed or report.missing else 0
