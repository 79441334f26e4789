"""``orderkit serve`` runs the service alone; ``orderkit access`` manages its clients."""

from __future__ import annotations

import click

from orderkit.cli.options import json_option, platform_option
from orderkit.cli.output import say

_DAYS_MAX = 3650
_RIGHTS = ("read", "order", "change", "end", "observe")
"""As in ``core.platform.service_access``, which help must not import."""


@click.command("serve")
@platform_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=7399,
    show_default=True,
    help="Port to listen on; 0: any free one.",
)
@click.option("--certificate", metavar="FILE", help="TLS certificate with its chain (PEM).")
@click.option("--key", metavar="FILE", help="Its private key (PEM).")
@click.option(
    "--behind-tls",
    is_flag=True,
    help="A proxy in front terminates TLS: allow addresses other than loopback without TLS here.",
)
@click.option(
    "--host-name",
    "names",
    metavar="NAME",
    multiple=True,
    help="A name that requests may have in their Host header, beside localhost and those of "
    "platform.yaml. Repeatable. Default off the loopback: any.",
)
@click.option(
    "--audit-log", metavar="FILE", help="File for the audit log. Default: standard error."
)
def serve_command(
    platform_file: str | None,
    host: str,
    port: int,
    certificate: str | None,
    key: str | None,
    behind_tls: bool,
    names: tuple[str, ...],
    audit_log: str | None,
) -> None:
    """
    Run Orderkit's HTTP service against the platform of platform.yaml.

    For your own platform; 'orderkit up' includes the service. Ctrl-C stops it.

    Example: orderkit serve --platform platform.yaml --audit-log audit.jsonl
    """
    import threading
    from pathlib import Path

    from orderkit.cli.serving.standalone import ServeRequest, Tls, check_listening, serving
    from orderkit.cli.signals import asked_to_end, set_by_signal, wait_for_signal

    stop = threading.Event()
    tls = Tls.of(certificate, key)
    check_listening(host, tls, behind_tls=behind_tls)
    audit = Path(audit_log) if audit_log else None
    serve_request = ServeRequest(
        platform_file, host, port, tls, audit, frozenset(names), behind_tls
    )
    with asked_to_end(lambda *_: set_by_signal(stop)), serving(serve_request) as url:
        say(f"Orderkit's service runs: {url}\nStop with ctrl-C.")
        wait_for_signal(stop)


@click.group("access")
def access_command() -> None:
    """Let programs use the service."""


@access_command.command("add")
@click.argument("name")
@click.option(
    "--team", "teams", multiple=True, help="A team that the client may act for. Repeatable."
)
@click.option("--everywhere", is_flag=True, help="The client may act for every team.")
@click.option(
    "--right",
    "rights",
    multiple=True,
    type=click.Choice(_RIGHTS),
    default=("read",),
    show_default=True,
    help="A right of the client. Repeatable.",
)
@click.option(
    "--requester", metavar="REF", help="The client's catalog reference. Default: user:default/NAME."
)
@click.option(
    "--days",
    type=click.IntRange(1, _DAYS_MAX),
    default=365,
    show_default=True,
    help="Days until the token expires.",
)
@platform_option
@json_option
def access_add(
    name: str,
    teams: tuple[str, ...],
    everywhere: bool,
    rights: tuple[str, ...],
    requester: str | None,
    days: int,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    Create a token for a program. Stores its digest and prints the token once.

    Replaces the token of an existing client of that name. A running service picks it up.

    Example: orderkit access add ci --team ae86 --right read --right change
    """
    from orderkit.cli.commands.clients import NewClient, add_client
    from orderkit.cli.output import emit_json

    new_client = NewClient(name, teams, everywhere, rights, requester, days)
    token, path = add_client(new_client, platform_file)
    if as_json:
        emit_json("orderkit.access/v1", {"client": name, "token": token, "file": str(path)})
        return
    say(token)
    say(f"the token is shown only once; its digest is in {path}", err=True)
