"""``orderkit platform`` renders, compares and upgrades a platform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO

import click

from ground.errors import EXIT_DIFFERS
from orderkit.cli.commands.platform_check import platform_check
from orderkit.cli.commands.platform_webhook import platform_webhook
from orderkit.cli.options import (
    json_option,
    platform_option,
    requester_option,
)

if TYPE_CHECKING:
    from pathlib import Path, PurePosixPath

    from orderkit.core.platform.settings import PlatformSettings
    from orderkit.core.portal.profile import Profile
    from orderkit.flows.install.pack_rendering import PlatformValues


@click.group("platform")
def platform_command() -> None:
    """Render, compare and upgrade a platform."""


_pack_option = click.option(
    "--pack", "pack_folder", metavar="DIR", help="The pack to render. Default: the reference pack."
)


platform_command.add_command(platform_check)
platform_command.add_command(platform_webhook)


@platform_command.command("render")
@click.option("--out", "out_folder", metavar="DIR", help="A new or empty folder to write to.")
@click.option(
    "--diff",
    is_flag=True,
    help="Show the differences to the platform's pack repository; exit 10 if there are any.",
)
@_pack_option
@click.option(
    "--profile",
    metavar="service|plugin|natural",
    help="How a portal runs templates. Default: the profile in platform.yaml.",
)
@click.option(
    "--target",
    type=click.Choice(["pack", "idpbuilder", "backstage"]),
    default="pack",
    show_default=True,
    help="The published pack, the folder for 'idpbuilder create', or a part of app-config.yaml.",
)
@click.option(
    "--argocd-release",
    type=click.File("rb"),
    metavar="FILE",
    help="manifests/install.yaml of the Argo CD that idpbuilder shall install instead of its own.",
)
@platform_option
@json_option
@click.pass_context
def platform_render(
    ctx: click.Context,
    out_folder: str | None,
    pack_folder: str | None,
    profile: str | None,
    target: str,
    argocd_release: BinaryIO | None,
    platform_file: str | None,
    *,
    diff: bool,
    as_json: bool,
) -> None:
    """
    Write the files that publishing the pack would publish. Nothing is published.

    Adapts the delivery tree to the platform, applies the portal's profile and fills in every value
    of the platform. --diff compares with the platform's pack repository.

    Example: orderkit platform render --out ./published --profile natural
    """
    from orderkit.cli.connecting import connect, load_settings
    from orderkit.cli.views import order_views, upgrade_views
    from orderkit.core.portal.profile import read_profile

    if argocd_release and target != "idpbuilder":
        raise click.UsageError("--argocd-release needs --target idpbuilder")
    if not (out_folder or diff) or (diff and target != "pack"):
        raise click.UsageError("give --out DIR, or --diff (which needs --target pack)")
    settings = load_settings(platform_file)
    portal_profile = read_profile("--profile", profile) if profile else settings.portal.profile
    rendered, values = _rendered(settings, pack_folder, portal_profile)
    if target == "idpbuilder":
        from orderkit.core.platform import idpbuilder

        rendered = idpbuilder.package(
            rendered,
            forge_url=settings.forge.address,
            pack=settings.pack,
            argocd_release=argocd_release.read() if argocd_release else b"",
        )
    if target == "backstage":
        rendered = _backstage(settings, rendered)
    if out_folder:
        _write(rendered, out_folder)
    if diff:
        from orderkit.flows.install.upgrading import plan_upgrade

        plan = plan_upgrade(connect(settings), rendered)
        upgrade_views.show_differences(plan, as_json=as_json)
        ctx.exit(EXIT_DIFFERS if plan.differing else 0)
    order_views.show_rendered_pack(values, sorted(rendered), str(out_folder), as_json)


def _rendered(
    settings: PlatformSettings, pack_folder: str | None, profile: Profile
) -> tuple[dict[PurePosixPath, bytes], PlatformValues]:
    from pathlib import Path

    from orderkit.adapters.folders.pack_folder import pack_commit, read_folder, reference_pack
    from orderkit.flows.install.pack_rendering import render_pack, values_of

    pack = Path(pack_folder) if pack_folder else reference_pack()
    files = read_folder(pack)
    values = values_of(settings, pack_commit(pack, files), profile=profile)
    return render_pack(files, values), values


def _backstage(
    settings: PlatformSettings, rendered: Mapping[PurePosixPath, bytes]
) -> dict[PurePosixPath, bytes]:
    """Return what a Backstage has to know: which entities its catalog admits from where."""
    from pathlib import PurePosixPath

    from orderkit.core.portal.catalog_origins import catalog_config
    from orderkit.flows.install.bootstrapping.portal_steps import template_paths
    from yamlfiles import yaml11

    urls = [f"{settings.pack_folder_url}{path}" for path in template_paths(rendered)]
    config = yaml11.dump({"catalog": catalog_config(urls)})
    return {PurePosixPath("app-config.orderkit.yaml"): config.encode()}


def rendered_for(settings: PlatformSettings, pack: Path) -> Mapping[PurePosixPath, bytes]:
    """
    Return a pack's files as publishing it to a platform would publish them.

    Raises:
        InvalidInputError: It is not a pack, it is broken, or a value of the platform is missing.
    """
    return _rendered(settings, str(pack), settings.portal.profile)[0]


def _write(rendered: Mapping[PurePosixPath, bytes], out_folder: str) -> None:
    from pathlib import Path

    from orderkit.adapters.folders.template_folder import check_free, write_tree
    from softwaretemplates.render import SkeletonFile

    check_free(Path(out_folder))
    write_tree({path: SkeletonFile(data) for path, data in rendered.items()}, Path(out_folder))


@platform_command.command("upgrade")
@_pack_option
@click.option("--plan", is_flag=True, help="Show what each wave would change. Nothing is written.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long one layer may take to become ready.",
)
@requester_option
@platform_option
@json_option
def platform_upgrade(
    pack_folder: str | None,
    timeout_s: float,
    requester: str,
    platform_file: str | None,
    *,
    plan: bool,
    as_json: bool,
) -> None:
    """
    Upgrade the platform to another pack or to a changed platform.yaml, wave by wave.

    Each layer gets one commit; the next layer is written when this one is ready. Exit code 5: a
    layer did not become ready; repeat the command to continue there.

    Example: orderkit platform upgrade --pack ../our-pack --plan
    """
    from orderkit.cli.connecting import connect, load_settings
    from orderkit.cli.output import Progress
    from orderkit.cli.serving.bootstrap_ports import service_files
    from orderkit.cli.views import upgrade_views
    from orderkit.flows.install.upgrading import (
        UpgradeRequest,
        plan_upgrade,
        refuse_unnamed_pack,
        upgrade,
    )

    settings = load_settings(platform_file)
    rendered, values = _rendered(settings, pack_folder, settings.portal.profile)
    platform = connect(settings)
    if pack_folder is None:
        refuse_unnamed_pack(platform, rendered)
    if plan:
        upgrade_views.show_plan(plan_upgrade(platform, rendered), as_json=as_json)
        return
    upgrade_request = UpgradeRequest(
        rendered, values.pack_commit, requester, timeout_s, settings, service_files(settings)
    )
    upgraded = upgrade(
        platform, upgrade_request, on_step=Progress(enabled=False if as_json else None)
    )
    upgrade_views.show_upgraded(upgraded, as_json=as_json)
