"""``orderkit serve``: run the service alone."""

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
