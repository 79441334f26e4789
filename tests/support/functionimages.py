"""
The image of a small function that does what its input says: an interpreter, its modules, a program.

It is a real program in a real image: the interpreter of these tests with only the files that the
program loads, each at its path on this machine. Files below ``/tmp`` are elsewhere in the image,
because a confined program has a ``/tmp`` of its own, which would hide them. What the program finds
in its confinement it tells as results.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositions.station import Resource, State, StationRequest

NAME = "function-tiny"
PACKAGE = (
    f"apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata:\n  name: {NAME}\n".encode()
)
PROGRAM = """
import concurrent.futures, ctypes, json, os, signal, socket, sys, threading, time
import encodings.ascii, encodings.idna, encodings.latin_1
import grpc
from crossplane.function.proto.v1 import run_function_pb2 as fn

LIST = "--list" in sys.argv


def tried(what):
    try:
        return repr(what())
    except BaseException as error:
        return type(error).__name__


def fork_many():
    made = 0
    try:
        while made < 2000:
            if os.fork() == 0:
                time.sleep(3600)
                os._exit(0)
            made += 1
    except OSError:
        pass
    return made


def fill(path):
    with open(path, "wb") as file:
        for _ in range(4096):
            file.write(b"x" * (1 << 20))


def fetched(place):
    end = socket.create_connection(("127.0.0.1", 3128), 2)
    end.sendall(f"CONNECT {place} HTTP/1.1\\r\\nHost: {place}\\r\\n\\r\\n".encode())
    line = end.recv(4096).decode().splitlines()[0]
    if line.split()[1] == "200":
        end.sendall(b"GET /v2/ HTTP/1.0\\r\\n\\r\\n")
        line += " " + end.recv(15).decode("latin-1")
    return line


def run(raw, context):
    request = fn.RunFunctionRequest.FromString(raw)
    xr = request.observed.composite.resource
    wish = request.input["do"] if "do" in request.input else "compose"
    response = fn.RunFunctionResponse()
    response.meta.tag = request.meta.tag
    response.desired.CopyFrom(request.desired)
    response.context.CopyFrom(request.context)

    def say(text):
        response.results.add(severity=fn.SEVERITY_NORMAL, message=str(text))

    if wish == "compose":
        part = response.desired.resources["settings"]
        part.resource.update({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "default"}, "data": {"depth": str(int(xr["spec"]["depth"]))},
        })
        part.ready = fn.READY_TRUE
    elif wish == "look up":
        selector = response.requirements.resources["it"]
        selector.api_version, selector.kind, selector.match_name = "v1", "ConfigMap", "facts"
        selector.namespace = "default"
        for item in request.required_resources["it"].items:
            say(item.resource["data"]["fact"])
    elif wish == "warn":
        response.results.add(severity=fn.SEVERITY_WARNING, message="take care")
        response.meta.ttl.seconds = 30
    elif wish == "refuse":
        response.results.add(severity=fn.SEVERITY_FATAL, message="not like this")
    elif wish == "read":
        say(tried(lambda: open("/etc/passwd").read()))
        say(tried(lambda: os.listdir("/home")))
        say(tried(lambda: os.listdir(sys.argv[-1])))
        say(sorted(os.environ))
    elif wish == "connect":
        say(tried(lambda: socket.create_connection(("127.0.0.1", int(request.input["port"])), 2)))
        say(tried(lambda: socket.create_connection(("1.1.1.1", 53), 2)))
    elif wish == "fetch":
        say(tried(lambda: fetched(request.input["place"])))
    elif wish == "sign in":
        for name, found in sorted(request.credentials.items()):
            data = {key: value.decode() for key, value in found.credential_data.data.items()}
            say(f"{name}: {sorted(data)}")
            part = response.desired.resources[name]
            meta = {"namespace": "default"}
            part.resource.update(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
            )
            part.ready = fn.READY_TRUE
    elif wish == "write":
        say(tried(lambda: open("/new", "w")))
        say(tried(lambda: open(__file__, "a")))
        say(tried(lambda: fill("/tmp/big")))
    elif wish == "kill":
        say(os.getuid())
        say(tried(lambda: os.kill(int(request.input["process"]), signal.SIGKILL)))
        say(tried(lambda: os.kill(1, signal.SIGKILL)))
        libc = ctypes.CDLL(None, use_errno=True)
        say([libc.unshare(0x10000000), ctypes.get_errno()])
        say(tried(lambda: open("/proc/sys/kernel/core_pattern", "w").write("|/x")))
    elif wish == "fork":
        say(fork_many())
    elif wish == "memory":
        say(tried(lambda: len(bytearray(3 << 30))))
    elif wish == "hang":
        time.sleep(3600)
    elif wish == "die":
        print("my last words", file=sys.stderr, flush=True)
        os._exit(7)
    elif wish == "garbage":
        return b"\\xff\\xff\\xff\\xff garbage"
    elif wish == "huge":
        return b"x" * (32 << 20)
    return response.SerializeToString()


handler = grpc.unary_unary_rpc_method_handler(run)
service = "apiextensions.fn.proto.v1.FunctionRunnerService"
server = grpc.server(
    concurrent.futures.ThreadPoolExecutor(4),
    handlers=[grpc.method_handlers_generic_handler(service, {"RunFunction": handler})],
    options=[("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0)],
)
server.add_insecure_port("127.0.0.1:0" if LIST else "127.0.0.1:9443")
server.start()
if LIST:
    modules = [getattr(module, "__file__", "") or "" for module in [*sys.modules.values()]]
    mapped = [line.split()[-1] for line in open("/proc/self/maps") if " /" in line]
    print(json.dumps([*modules, *mapped]))
else:
    server.wait_for_termination()
"""


@dataclass(frozen=True)
class Python:
    """An interpreter, and the folders of what is installed for it."""

    executable: str
    prefix: str
    packages: tuple[str, ...]


PYTHON = Python(
    str(Path(sys._base_executable).resolve()),  # type: ignore[attr-defined]  # noqa: SLF001
    sys.base_prefix,
    tuple(path for path in sys.path if path.endswith("site-packages")),
)
"""That of these tests."""


@functools.cache
def program_layer(python: Python = PYTHON) -> bytes:
    """Return a layer with the program and everything that it loads, as a tar archive."""
    here = Path(__file__).parent
    found = subprocess.run(
        [python.executable, "-c", PROGRAM, "--list"],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": ":".join(python.packages)},
    )  # fmt: skip
    wanted = {python.executable, os.__file__, *json.loads(found.stdout.splitlines()[-1])}
    files = {name for name in wanted if Path(name).is_file() and not name.startswith(str(here))}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in sorted({*files, *_loaders()}):
            _add(tar, _member(name), Path(name).read_bytes(), mode=0o755)
            if name.endswith(".py"):
                _add_compiled(tar, Path(importlib.util.cache_from_source(name)))
        for name in sorted(name for name in files if ".so" in name):
            for other in Path(name).parent.glob(f"{Path(name).name.partition('.so')[0]}*"):
                if other.is_symlink() and other.resolve() == Path(name).resolve():
                    link = tarfile.TarInfo(_member(str(other)))
                    link.type, link.linkname = tarfile.SYMTYPE, Path(name).name
                    tar.addfile(link)
        _add(tar, "program.py", PROGRAM.encode())
    return buffer.getvalue()


def _member(path: str) -> str:
    """Return where the image has a file of this machine."""
    return _inside(path).lstrip("/")


def _inside(path: str) -> str:
    return f"/outside{path}" if path.startswith("/tmp/") else path  # noqa: S108


def _add_compiled(tar: tarfile.TarFile, cached: Path) -> None:
    """Add a compiled module, so that the program starts sooner; it says not to be compared."""
    if cached.is_file():
        code = cached.read_bytes()
        unchecked = code[:4] + b"\1\0\0\0" + b"\0" * 8 + code[16:]
        _add(tar, _member(str(cached)), unchecked)


def _loaders() -> list[str]:
    """Return what the kernel starts a program with, where programs name it."""
    return [str(found) for room in ("/lib64", "/lib") for found in Path(room).glob("ld-linux*")]


def package_layer() -> bytes:
    """Return the layer that makes an image a package."""
    return layer({"package.yaml": PACKAGE})


def layer(files: Mapping[str, bytes]) -> bytes:
    """Return a layer with a few files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            _add(tar, name, data, mode=0o755)
    return buffer.getvalue()


def image_config(python: Python = PYTHON) -> dict[str, Any]:
    """Return how the program is started."""
    paths = ":".join(map(_inside, python.packages))
    environment = [f"PYTHONPATH={paths}", f"LD_LIBRARY_PATH={_inside(python.prefix)}/lib"]
    command = [_inside(python.executable), "/program.py"]
    return {"Entrypoint": command, "Env": environment, "WorkingDir": "/"}


def package_file(
    path: Path, files: Mapping[str, bytes] | None = None, start: Mapping[str, Any] | None = None
) -> Path:
    """Write a package as ``crossplane xpkg build`` does: the small one, or of these files."""
    processor = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    config = {"architecture": processor, "os": "linux", "config": start or image_config()}
    layers = {"0.tar": program_layer(), "1.tar": package_layer()}
    if files is not None:
        layers = {"0.tar": layer(files)}
    manifest = [{"Config": "config.json", "RepoTags": None, "Layers": list(layers)}]
    texts = {"manifest.json": manifest, "config.json": config}
    with tarfile.open(path, "w") as tar:
        for name, value in texts.items():
            _add(tar, name, json.dumps(value).encode())
        for name, data in layers.items():
            _add(tar, name, data)
    return path


def asked(do: str, **more: object) -> StationRequest:
    """Return a request to do something."""
    xr = {"apiVersion": "a.example.org/v1", "kind": "X", "spec": {"depth": 3}}
    return StationRequest(State(Resource(xr)), State(), {}, {"do": do, **more})


def _add(tar: tarfile.TarFile, name: str, data: bytes, *, mode: int = 0o644) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), mode
    tar.addfile(member, io.BytesIO(data))
