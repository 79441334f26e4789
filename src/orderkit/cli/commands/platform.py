"""
``orderkit platform``: render, compare, check and upgrade a platform, and register its webhooks.

``orderkit platform check`` reports what has drifted since the platform was bootstrapped. ``orderkit
platform webhook`` registers the webhooks that report to the service.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO

import click

from ground.errors import EXIT_DIFFERS
from orderkit.cli.options import (
    default_requester,
    json_option,
    platform_option,
    requester_option,
)
from orderkit.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path, PurePosixPath

    from ground.names import RepoId
    from orderkit.core.platform.settings import PlatformSettings
    from orderkit.core.portal.profile import Profile
    from orderkit.flows.install.pack_rendering import PlatformValues
    from orderkit.flows.platform import Platform


@click.command("check")
@platform_option
@click.option(
    "--pack", "pack_folder", metavar="DIR", help="The published pack. Default: the reference pack."
)
@json_option
def platform_check(platform_file: str | None, pack_folder: str | None, as_json: bool) -> int:
    """
    Compare the platform with the result of a new bootstrap; exit 1 if anything differs.

    Only reads. 'orderkit bootstrap' repairs what has drifted.

    Example: orderkit platform check --json
    """
    from orderkit.cli.certificate_findings import certificate_findings
    from orderkit.cli.commands.doctor import show
    from orderkit.cli.connecting import load_settings
    from orderkit.cli.serving.bootstrap_ports import BootstrapOptions, prepared
    from orderkit.flows.install import drift

    settings = load_settings(platform_file)
    bootstrap_options = BootstrapOptions(
        platform_file, pack_folder, default_requester(), 0.0, probe=False
    )
    with prepared(bootstrap_options) as (platform, request):
        findings = [*drift.check(platform, request), *certificate_findings(settings)]
    return show("orderkit.platform-check/v1", findings, as_json)


_PLAN_S = 120.0


@click.command("webhook")
@click.option("--team", "teams", multiple=True, help="A team's organisation. Repeatable.")
@click.option(
    "--repository", "repositories", metavar="OWNER/REPO", multiple=True, help="Repeatable."
)
@click.option(
    "--url",
    metavar="URL",
    help="Address at which the forge reaches the service. "
    "Default: spec.service.publicUrl, else url.",
)
@click.option(
    "--missed",
    is_flag=True,
    help="Also do in this process what the service missed: plan every open pull request whose "
    "head has no plan, and check every order whose newest commit is not checked.",
)
@platform_option
@json_option
def platform_webhook(
    teams: tuple[str, ...],
    repositories: tuple[str, ...],
    url: str | None,
    missed: bool,
    platform_file: str | None,
    as_json: bool,
) -> int:
    """
    Register webhooks on the forge, so that the service plans pull requests and checks pushes.

    Creates one webhook for each team; without --team and --repository, for every team. Bootstrap
    and 'orderkit team add' do so, too. Run it when the service's address or secret changes.

    Example: orderkit platform webhook --url https://orderkit.example.com

    Example: orderkit platform webhook --missed
    """
    from ground.errors import OrderkitError
    from orderkit.cli.connecting import connect, load_settings, token
    from orderkit.cli.output import emit_json
    from orderkit.core.platform.webhook_key import hook_key
    from orderkit.flows.team.connections import ensure_webhooks, service_webhook

    settings = load_settings(platform_file)
    targets: list[str | RepoId] = [*teams, *map(_repository, repositories)]
    secret = token(settings.service)
    service = _address(url or settings.service_address)
    platform = connect(settings)
    webhook = service_webhook(service, hook_key(secret))
    hooked = ensure_webhooks(platform, targets, webhook)
    if not as_json:
        for target in hooked:
            say(f"{target}: pull requests are reported to {webhook.url}")
    planned = []
    for pull, state, summary in _planned(platform, targets) if missed else ():
        planned.append({"pull": pull, "state": state, "summary": summary})
        if not as_json:
            say(f"{pull}: {summary}")
    checked = []
    for repo, state, summary in _checked(platform, targets) if missed else ():
        checked.append({"repository": repo, "state": state, "summary": summary})
        if not as_json:
            say(f"{repo}: {summary}")
    if as_json:
        report = {"url": webhook.url, "targets": [str(target) for target in hooked]}
        planned_report = {"planned": planned, "checked": checked} if missed else {}
        emit_json("orderkit.platform-webhook/v1", {**report, **planned_report})
    return OrderkitError.exit_code if any(plan["state"] == "error" for plan in planned) else 0


def _planned(platform: Platform, targets: list[str | RepoId]) -> Iterator[tuple[str, str, str]]:
    """Plan the pull requests without a plan; yield each with its state and a summary."""
    from contextlib import suppress

    from ground.errors import InProgressError, NotFoundError, OrderkitError, RefusedError
    from orderkit.cli.time_limits import within
    from orderkit.flows.change.reviewing import keep_judged
    from orderkit.flows.plan.pull_requests import keep_planned, say_failed, unplanned

    for repo, number in unplanned(platform, targets):
        try:
            with within(_PLAN_S):
                judged = keep_planned(platform, repo, number).judged
                with suppress(InProgressError):  # the forge does not show yet who pushed
                    keep_judged(platform, repo, number)
            yield f"{repo}#{number}", judged.state, judged.summary
        except (NotFoundError, RefusedError):
            continue  # merged, closed or ended meanwhile
        except OrderkitError as error:
            say_failed(platform.forge, repo, number, str(error))
            yield f"{repo}#{number}", "error", f"no plan: {error}"


def _checked(platform: Platform, targets: list[str | RepoId]) -> Iterator[tuple[str, str, str]]:
    """Check the newest commits without a status; yield each with its state and a summary."""
    from ground.errors import NotFoundError
    from orderkit.flows.order.commit_status import keep_checked, unchecked

    for repo in unchecked(platform, targets):
        try:
            check = keep_checked(platform, repo)
        except NotFoundError:
            continue  # ended meanwhile, or of a kit that the pack no longer has
        yield str(repo), check.state, check.summary


def _address(url: str) -> str:
    from urllib.parse import urlsplit

    from ground.errors import InvalidInputError

    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise InvalidInputError(
            "--url", url, "is not the address of a service", hint="https://host"
        )
    return url.rstrip("/")


def _repository(text: str) -> RepoId:
    from ground.errors import InvalidInputError
    from ground.names import RepoId

    repo = RepoId.parse(text)
    if repo is None:
        raise InvalidInputError(
            "--repository", text, "is not an OWNER/REPO", hint="--repository ae86/garage-ae86"
        )
    return repo


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
    from orderkit.flows.install.bootstrapping.team_steps import template_paths
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
