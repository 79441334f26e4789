"""Programs of campaigns that want more than they may: nothing of it works, and errors say why."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ground.errors import RefusedError
from orderkit.adapters.processes.confined_edits import run_program

ORDER = {"order": "garage-ae86", "team": "ae86", "kit": "garage", "files": {"README.md": "a\n"}}


def edits(body: str, **more: float) -> dict[str, str | None]:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return run_program(f"def edit(order):\n{lines}", ORDER, **more)


def test_a_program_sees_its_order_and_answers_files() -> None:
    program = "import re\nname = order['order']\n"
    assert edits(
        program + "return {'README.md': re.sub('a', name, order['files']['README.md'])}"
    ) == {"README.md": "garage-ae86\n"}
    assert edits("print('noise')\nreturn {'old.md': None}") == {"old.md": None}


def test_it_reads_and_writes_no_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden-value")
    for body in (
        f"return {{'a': open({str(secret)!r}).read()}}",
        f"open({str(tmp_path / 'new')!r}, 'w').write('x')\nreturn {{}}",
        "return {'a': open('/etc/passwd').read()}",
        "return {'a': open('/proc/self/environ').read()}",
    ):
        with pytest.raises(RefusedError) as error:
            edits(body)
        assert "hidden-value" not in str(error.value)
        assert "Error" in str(error.value)
    assert not (tmp_path / "new").exists()


def test_it_has_no_environment_network_or_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_TOKEN", "hidden-value")
    found = edits("import os\nreturn {'a': str(dict(os.environ))}")
    assert "hidden-value" not in str(found)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(RefusedError):
            edits(f"import socket\nsocket.create_connection(('127.0.0.1', {port}))\nreturn {{}}")
    for body in (
        "import os\nos.fork()\nreturn {}",
        "import subprocess\nsubprocess.run(['true'])\nreturn {}",
        "import os\nos.kill(os.getppid(), 9)\nreturn {}",
    ):
        with pytest.raises(RefusedError):
            edits(body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("while True: pass", "was stopped"),
        ("return {'a': 'x' * 10 ** 10}", "MemoryError"),
        ("import os\nos._exit(0)", "ended its process"),
        ("return {'a': 'x' * (9 << 20)}", "was stopped"),
        ("raise ValueError('no such thing')", "line 2: ValueError: no such thing"),
        ("return ['README.md']", "not paths with texts"),
        ("return {'README.md': 7}", "not paths with texts"),
        ("return {1: object()}", "TypeError"),
        ("raise SystemExit", "SystemExit"),
    ],
)
def test_what_goes_wrong_is_said(body: str, words: str) -> None:
    with pytest.raises(RefusedError, match=words) as error:
        edits(body, wall_s=3)
    assert error.value.hint
