"""Turn the options of ``orderkit stations`` into a running server."""

from __future__ import annotations

import importlib.util
import logging
from dataclasses import dataclass
from pathlib import Path

import click

from ground.errors import NotFoundError, UsageError
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.adapters.folders.station_process import FOLDER


@dataclass(frozen=True, slots=True)
class FunctionOptions:
    """What the command was given."""

    pack: str | None
    stations: str | None
    address: str
    certificates: str | None
    insecure: bool
    answer_s: float
    at_once: int
    memory_mib: int
    message_mib: int

    @property
    def folder(self) -> Path:
        """
        The folder of stations that is meant.

        Raises:
            UsageError: A pack and a folder are given. NotFoundError: there is no such folder.
        """
        if self.pack and self.stations:
            raise UsageError(
                "--pack and --stations: give one of them", hint="--pack DIR, or --stations DIR"
            )
        pack = Path(self.pack) if self.pack else reference_pack()
        folder = Path(self.stations) if self.stations else pack / FOLDER
        if not folder.is_dir():
            raise NotFoundError(
                f"{folder} is not a folder", hint=f"a pack's stations lie in its folder {FOLDER}/"
            )
        return folder.absolute()

    @property
    def certificates_folder(self) -> Path | None:
        """
        The folder of certificates, None for no TLS.

        Raises:
            UsageError: Neither was asked for.
        """
        if self.insecure:
            return None
        if not self.certificates:
            raise UsageError(
                "no certificates, so any caller would be accepted",
                hint="give --tls-certs-dir (Crossplane sets TLS_SERVER_CERTS_DIR), or --insecure",
            )
        return Path(self.certificates)


def serve(options: FunctionOptions) -> None:
    """
    Serve until SIGTERM; say where.

    Raises:
        UsageError: The extra ``functions`` is not installed, or options contradict each other.
        NotFoundError, InvalidInputError, OrderkitError: as
        ``adapters.functions.function_server.serve``.
    """
    if importlib.util.find_spec("crossplane") is None:
        raise UsageError(
            "orderkit stations needs gRPC and Crossplane's SDK",
            hint="install them with: pip install 'orderkit[functions]'",
        )
    from orderkit.adapters.functions import function_server
    from orderkit.adapters.processes.station_workers import CallLimits

    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    server_options = function_server.FunctionServerOptions(
        stations=options.folder,
        address=options.address,
        certificates=options.certificates_folder,
        limits=CallLimits(options.at_once, options.answer_s, options.memory_mib << 20),
        message_max_bytes=options.message_mib << 20,
    )
    how = "mutual TLS" if server_options.certificates else "WITHOUT TLS"
    host = options.address.rpartition(":")[0]
    function_server.serve(
        server_options,
        ready=lambda port: click.echo(
            f"stations of {server_options.stations}: {host}:{port}, {how}"
        ),
    )
