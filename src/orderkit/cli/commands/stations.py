"""``orderkit stations``: the gRPC server that runs a pack's stations inside Crossplane."""

from __future__ import annotations

import click


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
