"""``orderkit up`` runs the embedded platform."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from orderkit.cli.commands.console import console_link
from orderkit.cli.options import default_requester, profile_option, state_option, state_path
from orderkit.cli.output import say

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from orderkit.core.kit.pack import Pack
    from orderkit.core.platform.forge_kinds import ForgeKind
    from orderkit_standins.serve_platform import Running

F = TypeVar("F", bound=Callable[..., Any])


def _port(name: str, default: int, server: str) -> Callable[[F], F]:
    return click.option(
        f"--{name}-port",
        type=click.IntRange(0, 65535),
        help=f"Loopback port of {server}. Default: the port used last, at first {default}; "
        "0: any free port.",
    )


forge_option = click.option(
    "--forge",
    "forge_kind",
    type=click.Choice(["gitea", "github", "gitlab"]),
    help="Whose API the forge speaks with the platform. Default: as before, at first gitea.",
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
    "--user",
    "users",
    metavar="NAME[=TEAM]",
    multiple=True,
    help="A person of the forge, in a team; NAME=platform may approve for the platform. The "
    "password is in credentials/user-NAME of the state folder. Repeatable.",
)
@click.option(
    "--twins",
    metavar="NAMES",
    default="",
    help="Providers to imitate without Provider objects in the pack, for the kinds of its "
    "schemas/ and those that its kits compose: aws,gcp,azure,kubernetes,helm,sql,nop,other,"
    "operators. Default: those that the pack asks for.",
)
@click.option(
    "--docs",
    "docs_folder",
    metavar="DIR",
    help="The site of the documentation to serve. Default: what 'make docs' built in this "
    "checkout of Orderkit.",
)
@forge_option
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
    users: tuple[str, ...],
    twins: str,
    docs_folder: str | None,
    forge_kind: ForgeKind | None,
) -> None:
    """
    Run forge, cluster, delivery, assembly and catalog on this machine.

    State stays on disk; restarting loses nothing. Listens on 127.0.0.1 only.
    Stop it with Ctrl-C: exit code 0 if it was serving, 130 if it was still starting.

    Example: orderkit up --team ae86 --team rx7
    """
    import threading
    from pathlib import Path

    from ground.errors import OrderkitError
    from orderkit.adapters.folders.pack_folder import reference_pack
    from orderkit.cli.connecting import load_notifications
    from orderkit.cli.output import Progress
    from orderkit.cli.signals import asked_to_end, wait_for_signal
    from orderkit.core.platform.settings import read_values
    from orderkit.core.portal.profile import read_profile
    from orderkit_standins.platform import PortalOptions, Ports
    from orderkit_standins.providers import read_twins
    from orderkit_standins.serve_platform import EmbeddedRunRequest, Person, running

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
        tuple(map(Person.of, users)),
        forge_kind,
        Path(docs_folder) if docs_folder else reference_pack() / ".cache" / "docs" / "site",
    )
    lost: list[str] = []

    def on_lost(sentence: str) -> None:
        lost.append(sentence)
        stop.set()

    with asked_to_end(_stop_handler(serves, stop)):
        try:
            with running(run_request, on_step=Progress(enabled=True), on_lost=on_lost) as platform:
                serves.set()
                people = [person.login for person in run_request.people]
                say(welcome(platform, run_request.pack, people))
                wait_for_signal(stop)
        except OrderkitError:
            if not lost:  # else it is what came of that
                raise
    if lost:
        raise OrderkitError(lost[0], hint="start it again: what was acknowledged is there")


def _stop_handler(serves: threading.Event, stop: threading.Event) -> Callable[..., None]:
    """Return a handler that stops at once while starting."""
    from orderkit.cli.signals import set_by_signal

    def handle(*_: object) -> None:
        set_by_signal(stop)
        # no layer blocks Ctrl-C by its health
        if not serves.is_set():
            raise KeyboardInterrupt

    return handle


def welcome(running: Running, folder: Path, people: Sequence[str] = ()) -> str:
    """
    Return what a person reads once the platform runs.

    Raises:
        InvalidInputError: The pack in this folder is broken.
    """
    from orderkit.adapters.folders.pack_folder import read_folder
    from orderkit.adapters.functions.local_functions import program_functions
    from orderkit.core.kit.pack import read_pack
    from orderkit.flows.composing.published_pack import kits_not_run

    pack = read_pack(read_folder(folder))
    not_run = kits_not_run(pack, program_functions(pack.files))
    settings, state = running.settings, running.embedded.state.folder
    for_people = "".join(
        f"  {login:<9} password in {state / 'credentials' / f'user-{login}'}; signs in with"
        f" 'orderkit console --requester user:default/{login}'\n"
        for login in people
    )
    docs = running.docs or "not built: 'make docs' in a checkout, --docs FOLDER/.cache/docs/site"
    missing = f"{_not_run_text(not_run)}{_unplayed_text(running, pack)}"
    return f"""
Orderkit's embedded platform runs. State: {state}

  forge     {settings.forge.address}   (open it in a browser; viewer, password viewer, may read)
  cluster   {running.embedded.url("cluster")}   export KUBECONFIG={state / "kubeconfig"}
  catalog   {settings.portal.url}/api/catalog/entities
  service   {settings.service.url}
  docs      {docs}

  console   {console_link(settings, default_requester())}
            (signs you in once, within ten minutes; 'orderkit console' makes another link)
{for_people}\
{held_back_text(running)}{missing}{_next(running, pack, not_run)}
Stop with ctrl-C; nothing is lost.
"""


def held_back_text(running: Running) -> str:
    """Name the steps that were left out, and how to make them safe again."""
    lines = [f"  {step.step}: {step.detail}\n    → {step.advice}" for step in running.held_back]
    if not lines:
        return ""
    again = "Then start 'orderkit up' again. Until then, the platform serves what it had."
    return "\n".join(["", "Left out, because it is not safe:", "", *lines, "", again, ""])


def _unplayed_text(running: Running, pack: Pack) -> str:
    """Name the kinds that kits of the pack compose and nothing serves, and what helps."""
    from orderkit.core.unserved_kinds import unserved_advice
    from orderkit_standins.providers.provider_objects import unplayed_kinds

    unplayed = unplayed_kinds(running.platform.cluster, pack)
    if not unplayed:
        return ""
    lines = [f"  {kind}\n    → {unserved_advice(kind)}" for kind in unplayed]
    title = "Nothing here serves these kinds of the pack; orders with such a part fail:"
    return "\n".join(["", title, "", *lines, ""])


def _not_run_text(kits: Mapping[str, Sequence[str]]) -> str:
    """Name the kits whose orders will fail for a function that does not run here."""
    from compositions.python_functions import run_hint

    lines = [f"  {kit}: {', '.join(names)}" for kit, names in kits.items()]
    if not lines:
        return ""
    heading = "Orders of these kits will fail, because a function of theirs does not run here:"
    return "\n".join(["", heading, "", *lines, f"    → {run_hint()}", ""])


def _next(running: Running, pack: Pack, not_run: Container[str]) -> str:
    """Return example commands for the pack's first kit, rather one whose orders do not fail."""
    kit = next(iter(sorted(pack.kits(), key=lambda kit: kit.name in not_run)), None)
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
    {running.settings.forge.address}/{team}/{order}.git
"""


def _assignments(values: Mapping[str, Any]) -> str:
    """Return form values as a shell takes them for ``orderkit order``."""
    import json
    import shlex

    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in values.items()}
    return " ".join(shlex.quote(f"{name}={text}") for name, text in texts.items())
