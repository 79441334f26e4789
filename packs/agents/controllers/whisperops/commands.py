"""
The commands: ``watch`` and ``meter`` run the controllers, ``demo`` and ``play`` show them.

Options hold what differs between Deployments; addresses and credentials come from platform.yaml,
as for every command of Orderkit. Exit codes are Orderkit's.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from orderkit.controllers import (
    IncompleteError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RepoId,
    SystemClock,
    check_label,
    connect,
    redact,
    register_secret,
    stop_on_signals,
)
from whisperops.metrics import Metrics
from whisperops.records import LARGEST_BYTES

logger = logging.getLogger(__name__)
_EXIT_INTERRUPTED = 130
_DAY_S = 86_400
_COMMON: tuple[Callable[..., Any], ...] = (
    click.option("--platform", help="platform.yaml; default: as for orderkit."),
    click.option(
        "--namespace", default="whisperops", show_default=True, help="Where Lease and notes are."
    ),
    click.option(
        "--listen", default="127.0.0.1:9464", show_default=True, help="For metrics and probes."
    ),
    click.option("--no-election", is_flag=True, help="Work without a Lease: one process only."),
    click.option("--once", is_flag=True, help="One pass, then end; exit 5 if something is left."),
)


def _common(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_COMMON):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--verbose", is_flag=True, help="Log every pass.")
def root(*, verbose: bool) -> None:
    """Controllers of the agents' pack."""
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")


@root.command()
@click.option("--bucket", required=True, help="gs://, s3:// or file:// and where.")
@click.option("--source", help="Name of this bucket in labels and files; default: from --bucket.")
@click.option("--catalog", required=True, help="OWNER/REPOSITORY of the entities.")
@click.option(
    "--owner", default="group:default/platform", show_default=True, help="Of the entities."
)
@click.option("--interval", "interval_s", default=30.0, show_default=True, help="Seconds.")
@click.option(
    "--list-timeout", "timeout_s", default=60.0, show_default=True, help="Of a listing; seconds."
)
@click.option(
    "--passes", default=2, show_default=True, help="Listings without a blob until it is gone."
)
@click.option(
    "--lose-most", "most", default=3, show_default=True, help="Blobs that may be gone at once..."
)
@click.option(
    "--lose-percent", "percent", default=10, show_default=True, help="...or percent of all."
)
@click.option(
    "--largest", "largest_bytes", default=LARGEST_BYTES, show_default=True, help="Of a CSV; bytes."
)
@click.option("--register", "registers", is_flag=True, help="Register the entities in the portal.")
@_common
def watch(**options: Any) -> None:
    """
    Keep a registry of a bucket's CSV files in the cluster and in the portal's catalog.

    Example: python -m whisperops watch --bucket gs://datasets --catalog platform/datasets
    """
    from whisperops import watchmetrics
    from whisperops.buckets import source_of
    from whisperops.building import build_watcher

    for name in ("passes", "most", "percent", "largest_bytes"):
        _check_least(name, options[name], 1 if name in {"passes", "largest_bytes"} else 0)
    source = options["source"] or source_of(options["bucket"])
    check_label("source", source)
    watcher, cluster = build_watcher(options, source, _repo(options["catalog"]))
    metrics, clock = watchmetrics.new_metrics(), SystemClock()

    def work(may_continue: Callable[[], bool]) -> bool:
        started_s = clock.monotonic_s()
        result = watcher.run_pass(may_continue)
        took_s = clock.monotonic_s() - started_s
        watchmetrics.note(metrics, result, took_s=took_s, now_s=time.time())
        for part, error in result.failures.items():
            logger.warning("%s: %s", part, redact(str(error)))
        counts = (result.listed, result.registered, result.writes, result.removed)
        logger.info("%d listed, %d registered, %d writes, %d removed, %.2f s", *counts, took_s)
        return result.complete and not result.failures and not result.suspicious

    _run(work, cluster, metrics, f"dataset-watcher-{source}", options)


@root.command()
@click.option("--prometheus", required=True, help="Address of the query API, with its prefix.")
@click.option("--token-file", type=click.Path(path_type=Path), help="For Prometheus.")
@click.option("--tenant", default="", help="X-Scope-OrgID of Mimir.")
@click.option("--allow-http", is_flag=True, help="Send the token over plain HTTP.")
@click.option(
    "--prices",
    default="crossplane-system/whisperops-pricing",
    show_default=True,
    help="NAMESPACE/CONFIGMAP.",
)
@click.option("--interval", "interval_s", default=60.0, show_default=True, help="Seconds.")
@_common
def meter(**options: Any) -> None:
    """
    Measure what agents spend and write it where their budgets read it.

    Example: python -m whisperops meter --prometheus http://mimir.monitoring/prometheus
    """
    from whisperops import metermetrics
    from whisperops.building import build_meter

    spend_meter, cluster = build_meter(options, _token(options["token_file"]))
    metrics, clock = metermetrics.new_metrics(), SystemClock()

    def work(may_continue: Callable[[], bool]) -> bool:
        started_s = clock.monotonic_s()
        result = spend_meter.run_pass(may_continue)
        took_s = clock.monotonic_s() - started_s
        metermetrics.note(metrics, result, took_s=took_s, now_s=time.time())
        for name, error in result.failures.items():
            logger.warning("%s: %s", name, redact(str(error)))
        logger.info("%d of %d budgets measured, %.2f s", result.measured, result.budgets, took_s)
        return not result.failures

    _run(work, cluster, metrics, "spend-meter", options)


@root.command()
@click.option("--pack", "pack_folder", metavar="DIR", help="The agents' pack. Default: ours.")
@click.option("--keep", is_flag=True, help="Keep the state folder and say where it is.")
def demo(*, pack_folder: str | None, keep: bool) -> None:
    """
    Run the agents' demo on a fresh embedded platform and prove each stage.

    Example: python -m whisperops demo
    """
    import signal
    import tempfile

    from whisperops.demo.story import DemoFolders, tell

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    logging.getLogger("whisperops").setLevel(logging.ERROR)  # an outage is part of the story
    pack = Path(pack_folder) if pack_folder else Path(__file__).parents[2]
    if not (pack / "pack.yaml").is_file():
        raise NotFoundError(f"{pack} is not a pack", hint="name the agents' pack with --pack")
    if keep:
        folder = Path(tempfile.mkdtemp(prefix="agents-demo-"))
        tell(DemoFolders(folder, pack), click.echo)
        click.echo(f"kept: {folder}")
        return
    with tempfile.TemporaryDirectory(prefix="agents-demo-") as name:
        tell(DemoFolders(Path(name), pack), click.echo)


@root.command()
@click.option("--platform", help="platform.yaml of an embedded platform; default: as for orderkit.")
@click.option(
    "--bucket",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="A folder; every CSV in it is a dataset.",
)
@click.option("--catalog", default="platform/datasets", show_default=True, help="OWNER/REPOSITORY.")
@click.option("--interval", "interval_s", default=5.0, show_default=True, help="Seconds.")
@click.option("--register", "registers", is_flag=True, help="Register the entities in the portal.")
@click.option(
    "--tokens-per-minute",
    type=click.IntRange(0, 1_000_000_000),
    default=0,
    show_default=True,
    help="What each agent that runs writes.",
)
def play(
    *,
    platform: str | None,
    bucket: Path,
    catalog: str,
    interval_s: float,
    registers: bool,
    tokens_per_minute: int,
) -> None:
    """
    Run beside `orderkit up --pack packs/agents` what a cluster would run.

    Starts watcher and meter as in their Deployments, twins of kagent and Kyverno, token counters.

    Example: python -m whisperops play --bucket ./datasets --tokens-per-minute 500000
    """
    import threading

    from whisperops.demo.playing import PlayOptions, play

    repo, stop_requested = _repo(catalog), threading.Event()
    options = PlayOptions(bucket.resolve(), str(repo), interval_s, registers, tokens_per_minute)
    with connect(platform) as connection, stop_on_signals(stop_requested):
        play(connection, options, stop_requested, click.echo)


def _run(
    work: Callable[[Callable[[], bool]], bool],
    cluster: Any,
    metrics: Metrics,
    lease: str,
    options: dict[str, Any],
) -> None:
    from whisperops.serving import HealthServer, address_of

    if not 0 < options["interval_s"] <= _DAY_S:
        raise InvalidInputError("interval", options["interval_s"], "is not within a day")
    if options["once"]:
        _once(work)
        return
    from whisperops.building import build_loop

    loop = build_loop(work, cluster, lease, identity(), options)
    server = HealthServer(
        address_of(options["listen"]), metrics, alive=loop.alive, ready=loop.ready
    )
    with server, stop_on_signals(loop.stop_requested):
        click.echo(f"{lease}: metrics at {server.url}/metrics", err=True)
        loop.run()


def _once(work: Callable[[Callable[[], bool]], bool]) -> None:
    if not work(lambda: True):
        raise IncompleteError(
            "the pass left something undone; the log says what", hint="run it again"
        )


def identity() -> str:
    """Return a unique name for this process."""
    return f"{os.environ.get('HOSTNAME') or socket.gethostname()}_{uuid.uuid4().hex[:8]}"


def _repo(text: str) -> RepoId:
    owner, slash, name = text.partition("/")
    valid_name = re.compile(r"[A-Za-z0-9._-]+\Z")
    if not slash or not valid_name.match(owner) or not valid_name.match(name):
        raise InvalidInputError("catalog", text, "is not OWNER/REPOSITORY")
    return RepoId(owner, name)


def _check_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise InvalidInputError(name, value, f"is less than {least}")


def _token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        token = path.read_text().strip()
    except OSError as error:
        raise NotFoundError(f"the token for Prometheus cannot be read from {path}") from error
    register_secret(token)
    return token


def main(arguments: list[str] | None = None) -> int:
    """Run a controller; return the exit code."""
    try:
        root.main(arguments, prog_name="python -m whisperops", standalone_mode=False)
    except click.exceptions.Abort:
        return _EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show(sys.stderr)
        return error.exit_code
    except OrderkitError as error:
        click.echo(redact(f"error: {error}"), err=True)
        if error.hint:
            click.echo(f"hint: {error.hint}", err=True)
        return error.exit_code
    return 0
