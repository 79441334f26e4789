"""
Commands that serve until they are stopped: serve, mcp, stations.

``orderkit serve`` runs the service alone, ``orderkit mcp`` lets AI agents look, order and change on
behalf of a person, and ``orderkit stations`` is the gRPC server that runs a pack's stations inside
Crossplane.
"""

from __future__ import annotations

import click

from orderkit.cli.options import platform_option
from orderkit.cli.output import say


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
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json: one object a line, with request and operation ids, from information upwards.",
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
    log_format: str,
) -> None:
    """
    Run Orderkit's HTTP service against the platform of platform.yaml.

    For your own platform; 'orderkit up' includes the service. Ctrl-C stops it.

    Example: orderkit serve --platform platform.yaml --audit-log audit.jsonl
    """
    import signal
    import threading
    from pathlib import Path

    from orderkit.cli.serving.standalone import ServeRequest, Tls, check_listening, serving
    from orderkit.cli.signals import asked_to_end, set_by_signal, wait_for_signal

    if log_format == "json":
        from orderkit.web.auditing import log_as_json

        log_as_json()
    stop = threading.Event()
    tls = Tls.of(certificate, key)
    check_listening(host, tls, behind_tls=behind_tls)
    audit = Path(audit_log) if audit_log else None
    serve_request = ServeRequest(
        platform_file, host, port, tls, audit, frozenset(names), behind_tls
    )
    signals: list[int] = []

    def end(number: int, _frame: object) -> None:
        signals.append(number)
        set_by_signal(stop)

    def is_replaced() -> bool:
        return signals == [signal.SIGTERM]  # as a kubelet and systemd end it; asked again: at once

    with asked_to_end(end), serving(serve_request, is_replaced) as url:
        say(f"Orderkit's service runs: {url}\nStop with ctrl-C.")
        wait_for_signal(stop)


@click.command("mcp")
@click.option(
    "--http",
    "port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Serve Streamable HTTP on this loopback port instead of stdio. Each request brings its "
    "person's token.",
)
@click.option(
    "--agent", default="agent", show_default=True, metavar="NAME", help="Name of the agent."
)
@platform_option
def mcp_command(port: int | None, agent: str, platform_file: str | None) -> None:
    """
    Serve the Model Context Protocol: agents read, plan, order, change, extend and end.

    On stdio, ORDERKIT_TOKEN holds the token of the person for whom the agent acts. Each write waits
    for a person, unless 'orderkit team change --agents write' says else. No agent approves.

    Example: ORDERKIT_TOKEN=... orderkit mcp --agent claude
    """
    import os

    from ground.errors import NotFoundError
    from ground.names import check_label
    from orderkit.adapters.http import check_url
    from orderkit.cli.connecting import load_settings
    from orderkit.cli.serving.mcp_server import Gateway, mcp_server

    service = load_settings(platform_file).service.url
    if not service:
        raise NotFoundError(
            "platform.yaml has no spec.service", hint="set spec.service.url in platform.yaml"
        )
    url = check_url("service.url", service)
    token = os.environ.get("ORDERKIT_TOKEN", "")
    if port is None and not token:
        raise NotFoundError(
            "ORDERKIT_TOKEN is empty: nothing proves for whom the agent acts",
            hint="orderkit access add NAME --team TEAM --right read --right change makes a token",
        )
    own = None if port else {"Authorization": f"Bearer {token}"}
    server = mcp_server(Gateway(url, check_label("--agent", agent), own))
    if port:
        server.run("streamable-http", host="127.0.0.1", port=port, stateless_http=True)
    else:
        server.run("stdio")


@click.command("stations")
@click.option("--pack", metavar="DIR", help="The pack. Default: the reference pack.")
@click.option("--stations", metavar="DIR", help="A folder of stations, instead of a pack.")
@click.option(
    "--address",
    metavar="HOST:PORT",
    default="0.0.0.0:9443",
    envvar="ADDRESS",
    show_default=True,
    help="Address to listen on; port 0: any free port.",
)
@click.option(
    "--tls-certs-dir",
    metavar="DIR",
    envvar="TLS_SERVER_CERTS_DIR",
    help="Folder with tls.crt, tls.key and ca.crt; callers need a certificate signed by ca.crt. "
    "Default: $TLS_SERVER_CERTS_DIR, which Crossplane sets.",
)
@click.option(
    "--insecure",
    is_flag=True,
    envvar="INSECURE",
    help="Run without TLS, for development on loopback.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0.1, 110),
    default=10,
    show_default=True,
    help="Time limit of one station run, in seconds.",
)
@click.option(
    "--at-once",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="How many requests run at the same time, each in its own process.",
)
@click.option(
    "--memory-mib",
    type=click.IntRange(0, 65536),
    default=512,
    show_default=True,
    help="Memory limit of each process, in MiB; 0: no limit.",
)
@click.option(
    "--max-message-mib",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="Largest message in either direction, in MiB.",
)
def stations_command(
    pack: str | None,
    stations: str | None,
    address: str,
    tls_certs_dir: str | None,
    insecure: bool,
    timeout_s: float,
    at_once: int,
    memory_mib: int,
    max_message_mib: int,
) -> None:
    """
    Serve a pack's stations to Crossplane over gRPC until SIGTERM.

    The input of a Composition step names the station to run. Needs the extra 'functions'.

    Example: orderkit stations --pack . --insecure --address 127.0.0.1:9443
    """
    from orderkit.cli.serving.serve_functions import FunctionOptions, serve

    serve(
        FunctionOptions(
            pack,
            stations,
            address,
            tls_certs_dir,
            insecure,
            timeout_s,
            at_once,
            memory_mib,
            max_message_mib,
        )
    )
