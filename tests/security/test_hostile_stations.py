"""Code of a pack gets its request and nothing else: what stations try, and what becomes of it."""

from __future__ import annotations

import ast
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from scripts.houses import HOUSES

from compositions.station import Resource, Severity, State, Station, StationRequest
from orderkit.adapters.folders import confined_stations as confined
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.adapters.folders.station_process import BrokenStation
from orderkit.adapters.processes import confinement
from orderkit.cli.main import run

ROOT = Path(__file__).parents[2]
CANARY = "canary-5f2c"
STATION = """
import ctypes, mmap, os, signal, socket, struct, subprocess, sys, threading, time
from orderkit.stations import StationResponse

def station(request):
    response = StationResponse.to(request)
    xr = request.xr
    def took():
{body}
    response.merge_status({{"took": str(took())[:5000]}})
    return response
"""
FRAME = "s.sendall(struct.pack('!I', len(data)) + data)"
OWNER = "s = next(socket.socket(fileno=n) for n in range(3, 4096) if is_socket(n))"
IS_SOCKET = (
    "import stat; is_socket = lambda n: n in open_files() and stat.S_ISSOCK(os.fstat(n).st_mode)"
)
OPEN_FILES = """
def open_files():
    found = []
    for n in range(3, 1100):
        try:
            os.fstat(n)
        except OSError:
            continue
        found.append(n)
    return found
"""


@dataclass(frozen=True)
class Attack:
    reason: str
    body: str
    message: str
    """Of the fatal result; empty: the station ends, and took nothing."""

    @property
    def name(self) -> str:
        return "".join(c if c.isalnum() else "-" for c in self.reason.lower()).strip("-")


REFUSED, DENIED = "Operation not permitted", "Permission denied"
ATTACKS = [
    Attack("opens the git configuration", "return open(xr['home']).read()", DENIED),
    Attack("opens the accounts", "return open('/etc/passwd').read()", "at open('/etc/passwd')"),
    Attack("reads our environment", "return open(f'/proc/{os.getppid()}/environ').read()", DENIED),
    Attack("reads our memory", "return open(f'/proc/{os.getppid()}/mem', 'rb').read(1)", DENIED),
    Attack("reads its own files of proc", "return open('/proc/self/maps').read()", DENIED),
    Attack("opens the credential of the platform", "return open(xr['secret']).read()", DENIED),
    Attack("lists another pack", "return os.listdir(xr['other'])", DENIED),
    Attack("follows a link out of the pack", "return open(xr['link']).read()", DENIED),
    Attack("writes into the pack", "return open(__file__, 'a').write('#')", DENIED),
    Attack("removes a file of the pack", "return os.remove(__file__) or 'removed'", REFUSED),
    Attack("writes a temporary file", "return open('/tmp/taken', 'w').name", DENIED),
    Attack("writes shared memory", "return open('/dev/shm/taken', 'w').name", DENIED),
    Attack("connects", "return socket.create_connection(('127.0.0.1', xr['port']))", REFUSED),
    Attack("sends a datagram", "return socket.socket(type=socket.SOCK_DGRAM)", REFUSED),
    Attack("uses a unix socket", "return socket.socket(socket.AF_UNIX)", REFUSED),
    Attack("makes a pair of sockets", "return socket.socketpair()", REFUSED),
    Attack("forks", "return os.fork()", "at os.fork()"),
    Attack("starts a thread", "return threading.Thread(target=print).start() or 1", "new thread"),
    Attack("runs a shell", "return subprocess.check_output(['/bin/sh', '-c', 'id'])", REFUSED),
    Attack("becomes a shell", "return os.execv('/bin/sh', ['sh', '-c', 'id'])", "at os.exec("),
    Attack("kills us", "return os.kill(os.getppid(), signal.SIGKILL) or 'killed'", REFUSED),
    Attack(
        "changes its limits", "import resource; return resource.setrlimit(8, (1, 1))", "not allowed"
    ),
    Attack("takes memory", "return len(bytearray(8 << 30))", "MemoryError"),
    Attack("takes shared memory", "return len(mmap.mmap(-1, 8 << 30))", "Cannot allocate memory"),
    Attack("ends the process", "os._exit(0)", "was stopped: the child ended"),
    Attack("raises what ends a command", "raise SystemExit(0)", "was stopped: the child ended"),
    Attack("never ends", "while True: pass", "was stopped: the child gave no answer in time"),
    Attack("sleeps", "time.sleep(600)", "was stopped: the child gave no answer in time"),
    Attack(
        "answers with code to unpickle",
        f"{OWNER}; data = b'cos\\nsystem\\n(S\"touch /tmp/taken\"\\ntR.'; {FRAME}",
        "was stopped: it answered with something that is no response",
    ),
    Attack(
        "answers with a forged response",
        f'{OWNER}; data = b\'{{"composite": [[], 9, 9], "resources": {{"a": null}}}}\'; {FRAME}',
        "was stopped: it answered with something that is no response",
    ),
    Attack(
        "answers with brackets without end",
        f"{OWNER}; data = b'[' * 3_000_000; {FRAME}",
        "was stopped: it answered with something that is no response",
    ),
    Attack(
        "promises an answer of a gigabyte",
        f"{OWNER}; s.sendall(struct.pack('!I', 1 << 30))",
        "answered more than it may",
    ),
    Attack("answers too much", "request.context['much'] = 'x' * (9 << 20)", "more than it may"),
    Attack("calls the kernel itself", "return -ctypes.CDLL(None).socket(2, 1, 0)", ""),
    Attack("traces us", "return -ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)", ""),
    Attack("leaves its session", "return -ctypes.CDLL(None).setsid()", ""),
    Attack("prints a gigabyte", "[os.write(n, bytes(1 << 20)) for n in (1, 2) * 512]", ""),
]


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """Files and a server that stations shall not reach."""
    folder = tmp_path_factory.mktemp("outside")
    for name in ("home", "secret", "other/pack.yaml"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(CANARY)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield {
            "home": str(folder / "home"),
            "secret": str(folder / "secret"),
            "other": str(folder / "other"),
            "port": server.getsockname()[1],
        }


def write(pack: Path, name: str, body: str) -> Path:
    """Write a station of this body into a pack."""
    folder = pack / "stations" / name
    folder.mkdir(parents=True, exist_ok=True)
    lines = [*IS_SOCKET.splitlines(), *OPEN_FILES.splitlines(), *body.splitlines()]
    text = STATION.format(body="\n".join(f"        {line}" for line in lines))
    (folder / "station.py").write_text(text)
    return folder


@pytest.fixture(scope="module")
def hostile(
    tmp_path_factory: pytest.TempPathFactory, outside: dict[str, object]
) -> Iterator[Mapping[str, Station]]:
    pack = tmp_path_factory.mktemp("hostile")
    for attack in ATTACKS:
        write(pack, attack.name, attack.body)
    write(pack, "honest", "return 'an answer'")
    write(pack, "looks-around", "return dict(os.environ), open_files(), os.getcwd(), sys.argv")
    link = pack / "stations" / "honest" / "link"
    link.symlink_to(str(outside["secret"]))
    outside["link"] = str(link)
    os.environ["ORDERKIT_CANARY"] = CANARY
    inherited = os.open(str(outside["secret"]), os.O_RDONLY)
    os.set_inheritable(inherited, True)  # noqa: FBT003 - that is its signature
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(confined, "CALL_S", 3.0)
            yield confined.confined_stations(pack)
    finally:
        os.close(inherited)
        del os.environ["ORDERKIT_CANARY"]


def ask(station: Station, outside: dict[str, object]) -> tuple[str, object]:
    """Return the message of the fatal result, and what the station took."""
    response = station(StationRequest(State(Resource(dict(outside)))))
    fatal = [r.message for r in response.results if r.severity is Severity.FATAL]
    status = response.desired.composite.resource.get("status") or {}
    assert CANARY not in str(response), response
    return "".join(fatal), status.get("took")


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_a_station_takes_nothing_and_is_named(
    attack: Attack, hostile: Mapping[str, Station], outside: dict[str, object]
) -> None:
    message, took = ask(hostile[attack.name], outside)

    if attack.message:
        assert message.startswith(f'station "{attack.name}" ')
        assert attack.message in message
        assert took is None
    else:
        assert (message, took) in {("", "1"), ("", "None")}
    assert ask(hostile["honest"], outside) == ("", "an answer")
    assert not Path("/tmp/taken").exists()  # noqa: S108 - what an attack would write


def test_a_station_finds_nothing_of_ours_around_it(
    hostile: Mapping[str, Station], outside: dict[str, object]
) -> None:
    message, took = ask(hostile["looks-around"], outside)

    environment, files, folder, arguments = ast.literal_eval(str(took))
    assert message == ""
    assert set(environment) <= {"LC_CTYPE"}  # which Python sets
    assert len(files) == 1, "the socket to its owner"
    assert folder == "/"
    assert arguments[0] == "-c"


def test_a_request_that_stopped_a_station_does_not_stop_it_again(
    hostile: Mapping[str, Station], outside: dict[str, object]
) -> None:
    for _ in range(2):
        message, _ = ask(hostile["ends-the-process"], outside)

    assert message.endswith("the same request has stopped it before")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("open('/etc/passwd')", "(stations/bad/station.py:1): stations have no files"),
        ("import os; os._exit(0)", "importing it was stopped: the child ended"),
    ],
)
def test_what_a_station_does_while_it_is_imported_hurts_no_other(
    code: str, reason: str, tmp_path: Path
) -> None:
    (write(tmp_path, "bad", "return 1") / "station.py").write_text(code)
    write(tmp_path, "good", "return 'good'")

    found = confined.confined_stations(tmp_path)

    bad = found["bad"]
    assert isinstance(bad, BrokenStation)
    assert reason in bad.error
    assert ask(found["good"], {}) == ("", "good")


@pytest.mark.parametrize("command", ["test", "check"])
def test_a_command_names_the_kit_the_station_and_what_it_tried(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack = hostile_pack(tmp_path, "return open('/etc/passwd').read()")

    code = run(["kit", command, "--pack", str(pack)])

    printed = capsys.readouterr().out
    assert code == 1
    assert "garage" in printed
    assert 'station "garage" failed: PermissionError' in printed
    assert "at open('/etc/passwd'): stations have no files, network or processes" in printed


def hostile_pack(folder: Path, body: str) -> Path:
    """Copy the reference pack with another station for its kit."""
    pack = folder / "pack"
    pack.mkdir()
    for name in ("templates", "day2", "stations", "gitops", "schemas", "tests/kits"):
        if (reference_pack() / name).is_dir():
            shutil.copytree(reference_pack() / name, pack / name)
    shutil.copy(reference_pack() / "pack.yaml", pack)
    write(pack, "garage", body)
    return pack


WITHOUT = """
import errno, os, sys
from orderkit.adapters.processes import confinement
prctl = {"x86_64": 157, "aarch64": 167}[os.uname().machine]
confinement._prctl(38, 1)
confinement.install_filter([
    (0x20, 0, 0, 0), (0x15, 3, 0, 444), (0x15, 0, 4, prctl), (0x20, 0, 0, 16), (0x15, 1, 2, 22),
    (0x06, 0, 0, 0x00050000 | errno.ENOSYS), (0x06, 0, 0, 0x00050000 | errno.EPERM),
    (0x06, 0, 0, 0x7FFF0000),
])
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
LOOK = """
import sys
from pathlib import Path
from orderkit.adapters.folders.confined_stations import confined_stations
from orderkit.cli.main import run
from compositions.station import Resource, State, StationRequest
stations = confined_stations(Path(sys.argv[1]))
for name in ("looks", "allocates"):
    response = stations[name](StationRequest(State(Resource({}))))
    print(response.results or response.desired.composite.resource["status"]["took"])
"""


def run_without_protections(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the kernel knows neither Landlock nor filters."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments],
        env={**os.environ, "ORDERKIT_CANARY": CANARY},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_where_the_system_has_no_protections_the_rest_holds(tmp_path: Path) -> None:
    write(tmp_path, "looks", "return dict(os.environ), open_files()")
    write(tmp_path, "allocates", "return len(bytearray(8 << 30))")

    done = run_without_protections("-c", LOOK, str(tmp_path))

    first, second = done.stdout.splitlines()
    environment, files = ast.literal_eval(first)
    assert set(environment) <= {"LC_CTYPE"}
    assert len(files) == 1
    assert "MemoryError" in second


def test_where_the_system_has_no_protections_a_command_says_so_once(tmp_path: Path) -> None:
    pack = hostile_pack(tmp_path, "return hash('a')")

    done = run_without_protections("-m", "orderkit", "kit", "check", "--pack", str(pack))

    warnings = [line for line in done.stderr.splitlines() if "code of packs runs" in line]
    assert len(warnings) == 2, done.stderr
    assert "without Landlock: it can read the files of this user" in warnings[0]
    assert "without seccomp: it can use the network and start processes" in warnings[1]


def test_here_the_system_has_all_protections() -> None:
    """Else the attacks above would prove nothing."""
    assert confinement.missing() == []


def test_only_confined_processes_load_stations() -> None:
    loading = {
        str(path.relative_to(ROOT)).removeprefix("src/orderkit/")
        for house in HOUSES
        for path in (ROOT / house.source).rglob("*.py")
        if any(word in path.read_text() for word in ("load_stations(", "stations_in("))
    }

    assert loading - {
        "ports/pipeline_functions.py",
        "flows/composing/published_pack.py",
    } == {
        "adapters/folders/station_process.py",
        "adapters/functions/local_functions.py",
        "adapters/functions/station_answers.py",
    }
