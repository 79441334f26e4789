"""Files and the terminal: read-only folders, ctrl-C, --json errors, typos, Tab, narrow windows."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from commands import Command

from ground.names import TeamName
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli import commands as commands_package
from orderkit.cli import completion
from orderkit.cli.main import run
from orderkit.cli.output import Progress, columns_of, emit_table, phase_color, say
from orderkit.cli.root import root
from orderkit.flows.team.teams import add_team
from orderkit_standins.serve_platform import Running

Capture = pytest.CaptureFixture[str]
CLOSED = Path("/sys/orderkit-test")
"""Nobody may write there, not even root."""


@pytest.mark.parametrize(
    "arguments",
    [
        ["init", str(CLOSED)],
        ["up", "--state", str(CLOSED)],
        ["render", "skeletons/kit", "--values", "{values}", "--out", str(CLOSED)],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_folder_that_is_read_only_is_one_sentence(
    arguments: list[str], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reference_pack())
    (tmp_path / "values.yaml").write_text("{}")
    skeleton = tmp_path / "skeleton"
    skeleton.mkdir()
    (skeleton / "a.txt").write_text("a")
    places = {"{values}": str(tmp_path / "values.yaml"), "skeletons/kit": str(skeleton)}

    code = run([places.get(argument, argument) for argument in arguments])
    said = capsys.readouterr()

    assert (code, said.out) == (1, "")
    assert said.err.splitlines()[-2:] == [
        said.err.splitlines()[-2],
        "hint:  choose a place that you may write to, or change its permissions",
    ]
    assert "error: /sys/" in said.err
    assert "Traceback" not in said.err


def test_ctrl_c_while_modules_are_imported_is_one_sentence() -> None:
    script = (
        "import os, signal, sys\n"
        "from orderkit.cli.main import main\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'orderkit.cli.root': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.argv = ['orderkit', 'list']\n"
        "main()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "interrupted before anything was done\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["status", "garage-none", "--json"], 1, "no order 'garage-none' in the ledger"),
        (["order", "garage", "stge=stage9", "--json"], 2, "stge"),
        (["change", "garage-none", "--json"], 2, "give either FIELD=VALUE or --values"),
        (["team", "list", "--jsn", "--json"], 2, "No such option"),
        (["list", "--platform", "/nowhere", "--json"], 1, "no platform"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_an_error_with_json_is_an_object_too(
    arguments: list[str], code: int, message: str, orderkit: Command, capsys: Capture
) -> None:
    if "--platform" in arguments:
        assert run(arguments) == code
        said = capsys.readouterr()
        printed, err = json.loads(said.out), said.err
    else:
        done = orderkit(*arguments)
        assert done.code == code
        printed, err = done.json, done.err

    assert printed["schema"] == "orderkit.error/v1"
    assert message in printed["error"]["message"]
    assert printed["error"]["exitCode"] == code
    assert err, "a person reads it too"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [(["statuz"], "status"), (["team", "lst"], "list"), (["kit", "chek"], "check")],
)
def test_a_misspelled_command_names_the_nearest(
    typed: list[str], meant: str, capsys: Capture
) -> None:
    assert run(typed) == 2
    assert f"Did you mean '{meant}'?" in capsys.readouterr().err


def test_a_platform_that_does_not_answer_is_one_sentence(
    platform: Running, tmp_path: Path, capsys: Capture
) -> None:
    """Nothing listens on port 9 of this machine."""
    file = platform.embedded.state.folder / "platform.yaml"
    text = file.read_text().replace(platform.settings.forge.url, "http://127.0.0.1:9")
    (tmp_path / "platform.yaml").write_text(text)

    code = run(["list", "--platform", str(tmp_path / "platform.yaml")])
    lines = capsys.readouterr().err.splitlines()

    assert code == 1
    assert lines == [
        "error: nobody answers at http://127.0.0.1:9",
        "hint:  is the platform up? orderkit up",
    ]


def test_text_of_others_cannot_command_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    """An escape sequence in a pack or an order is shown as code points."""
    pack = tmp_path / "pack"
    assert run(["init", str(pack), "--no-git"]) == 0
    fields = ("--field", "size:integer:default=1", "--no-input")
    assert run(["kit", "new", "disk", "--pack", str(pack), *fields]) == 0
    order = tmp_path / "order.yaml"
    xr = "apiVersion: pack.example.org/v1alpha1\nkind: XDisk\nmetadata: {name: a}\n"
    order.write_text(xr + 'spec: {"\\e[31msize": 1}\n')
    kit_yaml = pack / "templates/disk/kit.yaml"
    kit_yaml.write_text(f'{kit_yaml.read_text()}  "\\e[31mkey": 1\n')
    scenario = pack / "tests/kits/disk/first-order/scenario.yaml"
    scenario.write_text(re.sub("reason: .*", r'reason: "\\\\e[31mwhy"', scenario.read_text()))
    capsys.readouterr()

    for arguments in (
        ["kit", "check", "--pack", str(pack)],
        ["kit", "test", "--pack", str(pack)],
        ["validate", str(order), "--pack", str(pack)],
    ):
        assert run(arguments) != 0
        said = capsys.readouterr()
        assert "\x1b" not in said.out + said.err, arguments
        assert "[31m" in said.out + said.err, arguments


def test_no_command_prints_past_the_one_place_that_makes_text_visible() -> None:
    commands = Path(commands_package.__file__).parent

    assert [file.name for file in commands.glob("*.py") if "click.echo(" in file.read_text()] == []


# --- completion


def offered(*words: str) -> list[str]:
    """Return what the shell offers for the last word."""
    shell = ShellComplete(root, {}, "orderkit", "_ORDERKIT_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


@pytest.fixture
def asked(platform: Running, monkeypatch: pytest.MonkeyPatch) -> Running:
    file = platform.embedded.state.folder / "platform.yaml"
    monkeypatch.setenv("ORDERKIT_PLATFORM", str(file))
    monkeypatch.setattr(completion, "_ASKING_S", 60.0)  # other tests run on this machine
    return platform


@pytest.mark.usefixtures("asked")
def test_tab_knows_orders_kits_and_fields(orderkit: Command) -> None:
    order = ("order", "garage", "team_name=ae86", "stage=stage1", "--no-wait")
    assert orderkit(*order).code == 0

    assert offered("order", "gar") == ["garage"]
    assert offered("order", "garage", "sta") == ["stage=stage1", "stage=stage2", "stage=stage3"]
    assert "garage-ae86" in offered("status", "garage-ae")
    assert offered("change", "garage-ae86", "stage=stage2") == ["stage=stage2"]
    assert "garage" in offered("team", "add", "x", "--kit", "g")
    assert "garage" in offered("kit", "check", "--pack", str(reference_pack()), "g")


def test_tab_says_nothing_without_a_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("ORDERKIT_PLATFORM", str(tmp_path / "none.yaml"))

    assert offered("status", "gar") == []
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


def test_bash_gets_the_words() -> None:
    shell = {
        "_ORDERKIT_COMPLETE": "bash_complete",
        "COMP_WORDS": "orderkit statu",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [Path(sys.executable).with_name("orderkit")],
        env={**os.environ, **shell},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.stdout, done.stderr) == ("plain,status\n", "")


_ZSH = """
compdef() { : }
compadd() { print -l -- "${completions[@]}" }
_describe() { print -l -- "${completions_with_descriptions[@]}" }
eval "$(_ORDERKIT_COMPLETE=zsh_source orderkit)"
words=(orderkit list --ph) CURRENT=3
_orderkit_completion
words=(orderkit list --phase F) CURRENT=4
_orderkit_completion
"""
_FISH = """
_ORDERKIT_COMPLETE=fish_source orderkit | source
complete -C 'orderkit list --ph'
complete -C 'orderkit list --phase F'
"""


@pytest.mark.parametrize(("shell", "script"), [("zsh", _ZSH), ("fish", _FISH)], ids=["zsh", "fish"])
def test_the_documented_lines_work_in_the_shell(shell: str, script: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    folder = Path(sys.executable).parent
    variables = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    options = ["-f"] if shell == "zsh" else ["--no-config"]

    done = subprocess.run(
        [program, *options, "-c", script],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    lines = done.stdout.splitlines()
    assert done.stderr == ""
    assert lines[0].startswith("--phase")
    assert "Only orders in this phase" in lines[0]
    assert lines[-1] == "Failing"


# --- narrow windows


def test_a_table_becomes_paragraphs_at_40_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    reason = "XBucket.example.org bucket-one: the AppProject does not allow it"
    url = "https://forge.example.org/" + "long/" * 10

    rows = [("bucket-one", "Failing", reason), ("bucket-two", "Ready", url)]
    emit_table(("ORDER", "PHASE", "REASON"), rows)
    lines = capsys.readouterr().out.splitlines()

    assert lines[0] == "ORDER   bucket-one"
    assert all(len(line) <= 40 or url in line for line in lines), lines
    assert any(url in line for line in lines), "a long word stays whole: it can be copied"


def test_a_list_stays_a_table_where_the_reason_has_no_room(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    name = "workspace-" + "photos-" * 4
    head = ("PHASE", "ORDER", "AGE", "REASON")
    rows = [
        ("Failing", name, "3 days", "the quota of " + "vCPUs " * 9),
        ("Ready", "b", "5 min", ""),
    ]

    emit_table(head, rows, last_below=True)
    lines = capsys.readouterr().out.splitlines()

    assert lines[:2] == [f"PHASE     ORDER{' ' * 36}AGE", "  REASON"]
    assert lines[2] == f"Failing   {name}   3 days"
    assert lines[3].startswith("  the quota of vCPUs")
    assert lines[-1] == f"Ready     b{' ' * 40}5 min"
    assert all(len(line) <= 60 for line in lines)


def test_an_interrupt_says_what_is_left_of_a_command_that_writes(
    platform: Running, tmp_path: Path
) -> None:
    """Ctrl-C while an order waits ends at once, without a traceback, and says how to go on."""
    file = platform.embedded.state.folder / "platform.yaml"
    command = [sys.executable, "-m", "orderkit", "wait", "garage-none", "--for", "gone"]
    order = [sys.executable, "-m", "orderkit", "register", "garage-none", "--kit", "garage"]
    order += ["--team", "ae86"]
    slow = tmp_path / "sitecustomize.py"
    slow.write_text(
        "import os, signal, threading\n"
        "threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "import time; import socket\n"
        "connect = socket.socket.connect\n"
        "socket.socket.connect = lambda *a: (time.sleep(5), connect(*a))[1]\n"
    )
    variables = {**os.environ, "ORDERKIT_PLATFORM": str(file), "PYTHONPATH": str(tmp_path)}

    done = [
        subprocess.run(
            typed, env=variables, capture_output=True, text=True, check=False, timeout=30
        )
        for typed in (order, command)
    ]

    assert [run.returncode for run in done] == [130, 130], done
    assert done[0].stderr.splitlines()[-1].startswith("hint:  Orderkit undid nothing; the same com")
    assert done[1].stderr.splitlines()[-1] == "error: interrupted", "nothing was written"
    assert "Traceback" not in done[0].stderr + done[1].stderr


def test_a_long_reason_wraps_inside_its_column(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    reason = "the AppProject does not allow it, and\nthat is all that anybody said about it"

    emit_table(("ORDER", "REASON"), [("bucket-one", reason), ("\u6876", "fine")])
    lines = capsys.readouterr().out.splitlines()

    assert lines == [
        "ORDER        REASON",
        "bucket-one   the AppProject does not allow it, and that is",
        "             all that anybody said about it",
        "\u6876           fine",
    ]


@pytest.mark.parametrize(
    ("environment", "is_colored"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=["a terminal", "NO_COLOR", "a dumb terminal"],
)
def test_phases_have_colours_on_terminals_that_want_them(
    environment: dict[str, str],
    *,
    is_colored: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    colors, rows = {0: phase_color}, [("Failing", "\x1b[31mred"), ("Ready", "")]

    emit_table(("PHASE", "REASON"), rows, colors)
    piped = capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    emit_table(("PHASE", "REASON"), rows, colors)
    shown = capsys.readouterr().out

    assert piped == "PHASE     REASON\nFailing   \\u001b[31mred\nReady\n"
    assert ("\x1b[31mFailing\x1b[0m   \\u001b[31mred" in shown) is is_colored
    assert is_colored or shown == piped


@pytest.mark.parametrize(
    ("options", "is_colored"), [((), True), (("--no-color",), False)], ids=["as is", "plain"]
)
def test_one_option_takes_the_colours_from_every_command(
    options: tuple[str, ...],
    *,
    is_colored: bool,
    platform: Running,
    orderkit: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    add_team(platform.platform, TeamName("wild-plain"), requester="user:default/test")

    form = ("team_name=wild-plain", "stage=stage1", "--no-wait")
    done = orderkit(*options, "order", "garage", *form)

    assert done.code == 0, done.err
    assert ("\x1b[" in done.err) is is_colored


def test_an_error_wraps_between_words_at_40_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    assert run(["kit", "new", "x y", "--no-input"]) != 0

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 2
    assert all(len(line) <= 40 for line in lines), lines


# --- the line that says what is waited for


def drawn(monkeypatch: pytest.MonkeyPatch, capsys: Capture, columns: int, *summaries: str) -> str:
    """Return what a terminal gets while a command waits, then prints its result."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    progress = Progress()
    assert progress.on_wait is not None
    for summary in summaries:
        progress.on_wait(summary)
    say("done")
    return capsys.readouterr().err


def test_the_waiting_line_is_drawn_in_place_and_removed_before_the_result(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    text = drawn(monkeypatch, capsys, 60, "Assembling 1/9: a \u6876\nis late" * 3, "b\x1b[2J")

    lines = text.split("\r")
    assert [line.endswith("\x1b[K") for line in lines] == [False, True, True, True]
    assert lines[0] == ""
    assert lines[3] == "\x1b[K"
    assert "… Assembling 1/9: a \u6876" in lines[1]
    assert lines[1].endswith("… is late\x1b[K") or lines[1].endswith("\u6876 is late\x1b[K")
    assert columns_of(lines[1].removesuffix("\x1b[K")) == 59
    assert lines[2].endswith("… b\\u001b[2J\x1b[K"), "strangers' words command nothing"
    assert "\n" not in text


def test_without_a_terminal_what_is_waited_for_is_said_once_a_change(capsys: Capture) -> None:
    progress = Progress(enabled=True)
    for summary in ("… one", "… one", "… two"):
        progress("layer", summary)

    lines = capsys.readouterr().err.splitlines()
    assert [line.split("layer")[1].strip() for line in lines] == ["… one", "… two"]


@pytest.mark.parametrize(
    ("environment", "redirect", "code"),
    [
        ({"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}, "", 0),
        ({"COLUMNS": "1"}, "", 0),
        ({}, "2>&-", 0),
        ({}, "2>/dev/full", 0),
        ({}, "| true", 0),
    ],
    ids=["not UTF-8", "one column", "closed", "a full disk", "a pipe that closes"],
)
def test_waiting_breaks_on_no_terminal(
    environment: dict[str, str], redirect: str, code: int
) -> None:
    script = (
        "import sys\n"
        "from orderkit.cli import main, output\n"
        "sys.stdout, sys.stderr = map(main._tolerant, (sys.stdout, sys.stderr))\n"
        "progress = output.Progress()\n"
        "for n in range(3):\n"
        "    if progress.on_wait: progress.on_wait('Assembling \u6876 %d' % n)\n"
        "output.say('done')\n"
    )
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(script)} {redirect}"
    variables = {**os.environ, "TERM": "xterm", **environment}
    done, text = in_terminal(["sh", "-c", command], variables)

    assert done == code
    assert "Traceback" not in text
    if not redirect:
        assert text.endswith("\r\x1b[Kdone\r\n")


def in_terminal(command: list[str], variables: dict[str, str]) -> tuple[int, str]:
    """Run a command in a terminal; return its exit code and what the terminal got."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, env=variables
    )
    os.close(follower)
    chunks = []
    with contextlib.suppress(OSError):  # the end of a terminal
        while chunk := os.read(leader, 65536):
            chunks.append(chunk)
    os.close(leader)
    return process.wait(60), b"".join(chunks).decode()
