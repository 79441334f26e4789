"""``orderkit up`` runs the embedded platform; ``platform`` renders and upgrades any platform."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

from orderkit.cli.commands.console import console_link
from orderkit.cli.commands.platform_check import platform_check
from orderkit.cli.commands.platform_webhook import platform_webhook
from orderkit.cli.options import (
    default_requester,
    json_option,
    platform_option,
    profile_option,
    requester_option,
    state_option,
    state_path,
)
from orderkit.cli.output import say
from orderkit.core.errors import EXIT_DIFFERS

if TYPE_CHECKING:
    import threading
    from pathlib import Path, PurePosixPath

    from orderkit.cli.serving.embedded_platform import Running
    from orderkit.core.platform.settings import PlatformSettings
    from orderkit.core.portal.profile import Profile
    from orderkit.flows.install.pack_rendering import PlatformValues

F = TypeVar("F", bound=Callable[..., Any])
"""The names in ``adapters.embedded.forge.behaviour``, which is too heavy to import for help."""


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
    portal_profile = read_profile("--profile", profile) if profile else settings.profile
    rendered, values = _rendered(settings, pack_folder, portal_profile)
    if target == "idpbuilder":
        from orderkit.core.platform import idpbuilder

        rendered = idpbuilder.package(
            rendered,
            forge_url=settings.forge.url,
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
    from orderkit.core.yaml import yaml11
    from orderkit.flows.install.bootstrapping.portal_steps import template_paths

    base = f"{settings.forge.url}/{settings.pack}/src/branch/main"
    urls = [f"{base}/{path}" for path in template_paths(rendered)]
    config = yaml11.dump({"catalog": catalog_config(urls)})
    return {PurePosixPath("app-config.orderkit.yaml"): config.encode()}


def rendered_for(settings: PlatformSettings, pack: Path) -> Mapping[PurePosixPath, bytes]:
    """
    Return a pack's files as publishing it to a platform would publish them.

    Raises:
        InvalidInputError: It is not a pack, it is broken, or a value of the platform is missing.
    """
    return _rendered(settings, str(pack), settings.profile)[0]


def _write(rendered: Mapping[PurePosixPath, bytes], out_folder: str) -> None:
    from pathlib import Path

    from orderkit.adapters.folders.template_folder import check_free, write_tree
    from orderkit.core.portal.render import SkeletonFile

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
    from orderkit.cli.views import upgrade_views
    from orderkit.flows.install.upgrading import UpgradeRequest, plan_upgrade, upgrade

    settings = load_settings(platform_file)
    rendered, values = _rendered(settings, pack_folder, settings.profile)
    platform = connect(settings)
    if plan:
        upgrade_views.show_plan(plan_upgrade(platform, rendered), as_json=as_json)
        return
    upgrade_request = UpgradeRequest(
        rendered, values.pack_commit, requester, timeout_s, settings.installation
    )
    upgraded = upgrade(
        platform, upgrade_request, on_step=Progress(enabled=False if as_json else None)
    )
    upgrade_views.show_upgraded(upgraded, as_json=as_json)


def _port(name: str, default: int, server: str) -> Callable[[F], F]:
    return click.option(
        f"--{name}-port",
        type=click.IntRange(0, 65535),
        help=f"Loopback port of {server}. Default: the port used last, at first {default}; "
        "0: any free port.",
    )


@click.command("up")
@state_option
@click.option(
    "--pack", "pack_folder", metavar="DIR", help="The pack to serve. Default: the reference pack."
)
@click.option(
    "--team",
    "teams",
    multiple=True,
    help="A team that may order. Default: the teams of the last start, at first ae86.",
)
@_port("forge", 7300, "the forge")
@_port("cluster", 7344, "the Kubernetes API")
@_port("portal", 7307, "the catalog")
@_port("service", 7399, "Orderkit's service")
@click.option(
    "--webhook-port",
    "webhook_ports",
    type=click.IntRange(1, 65535),
    multiple=True,
    help="A loopback port that webhooks may call, beside the service's. Repeatable.",
)
@profile_option
@click.option(
    "--value",
    "values",
    metavar="NAME=TEXT",
    multiple=True,
    help="A platform value that kits write into hidden fields. Repeatable.",
)
@click.option(
    "--signed-by",
    metavar="URL",
    help="A Backstage whose signatures prove who orders. Default: requesters are not verified.",
)
@click.option(
    "--catalog",
    metavar="URL",
    help="A Backstage whose catalog has the orders; it must accept credentials/portal-token of"
    " the state folder as a static token. Default: the embedded catalog.",
)
@click.option(
    "--platform-group",
    "platform_groups",
    metavar="GROUP",
    multiple=True,
    help="A group whose members act for every team: group:default/platform. Repeatable.",
)
@click.option(
    "--notifications",
    "notifications_file",
    metavar="FILE",
    help="YAML with what platform.yaml has below notifications. Default: nobody is notified.",
)
@click.option(
    "--twins",
    metavar="NAMES",
    default="",
    help="Providers to imitate without Provider objects in the pack, for the kinds of its "
    "schemas/: aws,gcp,azure,kubernetes,helm,sql. Default: those that the pack asks for.",
)
def up_command(
    state_folder: str | None,
    pack_folder: str | None,
    teams: tuple[str, ...],
    forge_port: int | None,
    cluster_port: int | None,
    portal_port: int | None,
    service_port: int | None,
    webhook_ports: tuple[int, ...],
    profile: str,
    values: tuple[str, ...],
    signed_by: str | None,
    catalog: str | None,
    platform_groups: tuple[str, ...],
    notifications_file: str | None,
    twins: str,
) -> None:
    """
    Run forge, cluster, delivery, assembly and catalog on this machine.

    State stays on disk; restarting loses nothing. Listens on 127.0.0.1 only.
    Stop it with Ctrl-C: exit code 0 if it was serving, 130 if it was still starting.

    Example: orderkit up --team ae86 --team rx7
    """
    import threading
    from pathlib import Path

    from orderkit.adapters.embedded.platform import PortalOptions, Ports
    from orderkit.adapters.embedded.providers import read_twins
    from orderkit.adapters.folders.pack_folder import reference_pack
    from orderkit.cli.connecting import load_notifications
    from orderkit.cli.output import Progress
    from orderkit.cli.serving.embedded_platform import EmbeddedRunRequest, running
    from orderkit.cli.signals import asked_to_end, wait_for_signal
    from orderkit.core.platform.settings import read_values
    from orderkit.core.portal.profile import read_profile

    serves, stop = threading.Event(), threading.Event()
    run_request = EmbeddedRunRequest(
        state_path(state_folder),
        Path(pack_folder) if pack_folder else reference_pack(),
        Ports(forge_port, cluster_port, portal_port, service_port, frozenset(webhook_ports)),
        teams,
        PortalOptions(read_profile("--profile", profile), signed_by, platform_groups, catalog),
        read_values(values),
        load_notifications(notifications_file),
        read_twins(twins),
    )
    with (
        asked_to_end(_stop_handler(serves, stop)),
        running(run_request, on_step=Progress(enabled=True)) as platform,
    ):
        serves.set()
        say(_welcome(platform, run_request.pack))
        wait_for_signal(stop)


def _stop_handler(serves: threading.Event, stop: threading.Event) -> Callable[..., None]:
    """Return a handler that stops at once while starting: no layer blocks Ctrl-C by its health."""
    from orderkit.cli.signals import set_by_signal

    def handle(*_: object) -> None:
        set_by_signal(stop)
        if not serves.is_set():
            raise KeyboardInterrupt

    return handle


def _welcome(running: Running, pack: Path) -> str:
    settings, folder = running.settings, running.embedded.state.folder
    return f"""
Orderkit's embedded platform runs. State: {folder}

  forge     {settings.forge.url}   (open it in a browser; viewer, password viewer, may read)
  cluster   {running.embedded.url("cluster")}   export KUBECONFIG={folder / "kubeconfig"}
  catalog   {settings.portal.url}/api/catalog/entities
  service   {settings.service.url}

  console   {console_link(settings, default_requester())}
            (signs you in once, within ten minutes; 'orderkit console' makes another link)
{held_back_text(running)}{_next(running, pack)}
Stop with ctrl-C; nothing is lost.
"""


def held_back_text(running: Running) -> str:
    """Name the steps that were left out, and how to make them safe again."""
    lines = [f"  {step.step}: {step.detail}\n    → {step.advice}" for step in running.held_back]
    if not lines:
        return ""
    again = "Then start 'orderkit up' again. Until then, the platform serves what it had."
    return "\n".join(["", "Left out, because it is not safe:", "", *lines, "", again, ""])


def _next(running: Running, pack: Path) -> str:
    """Return example commands for the pack's first kit."""
    from orderkit.adapters.folders.pack_folder import read_folder
    from orderkit.core.kit.pack import read_pack

    kit = next(iter(read_pack(read_folder(pack)).kits()), None)
    if kit is None:
        return "\nThe pack has no kit yet: orderkit kit new NAME, then start this again.\n"
    values = {} if not kit.examples else kit.examples[0].values
    order = kit.order_id(values) if values else f"{kit.name}-NAME"
    team = kit.team(values) if values else "TEAM"
    kubeconfig = running.embedded.state.folder / "kubeconfig"
    return f"""
Next, in another terminal:

  orderkit order {kit.name} {_assignments(values) or "FIELD=VALUE..."}
  orderkit list
  orderkit trace {order}
  KUBECONFIG={kubeconfig} kubectl get {kit.xrd["spec"]["names"]["plural"]} --all-namespaces
  orderkit destroy {order}

Change an order through Git (clone, edit manifests/, commit, push):

  git clone -c credential.helper='store --file={running.embedded.git_credentials}' \\
    {running.settings.forge.url}/{team}/{order}.git
"""


def _assignments(values: Mapping[str, Any]) -> str:
    """Return form values as a shell takes them for ``orderkit order``."""
    import json
    import shlex

    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in values.items()}
    return " ".join(shlex.quote(f"{name}={text}") for name, text in texts.items())
