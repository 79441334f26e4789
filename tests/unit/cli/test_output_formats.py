"""An order's outputs as shells and CI systems read them: the same value, or a refusal."""

from __future__ import annotations

import base64
import json
import subprocess

import pytest
import yaml
from cirunners import dotenv_report, step_outputs
from hypothesis import given, settings
from hypothesis import strategies as st

from ground.errors import OrderkitError, RefusedError
from ground.names import CommitSha, OrderId, TeamName
from ground.visible_text import visible
from orderkit.cli.output import Progress, as_json, say, say_wrapped
from orderkit.cli.views.output_views import show_outputs
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_state import OrderState
from orderkit.core.order.order_view import OrderSources
from orderkit.flows.order.order_outputs import OrderOutputs, OutputValue
from orderkit.flows.order.order_report import OrderReport

ENTRY = OrderEntry(TeamName("ae86"), OrderId("garage-ae86"))
REPORT = OrderReport(
    OrderSources(ENTRY, ending=False, application=None, xr=None),
    "garage",
    OrderState("Ready", "", CommitSha("c" * 40)),
    "https://forge.example.com",
    None,
)
HOSTILE = (
    "$(touch owned)",
    "`touch owned`",
    "'; touch owned; '",
    '"; touch owned; "',
    "a\\'b\\nc",
    "~/x:~root",
    "first\nsecond\n",
    "\n::add-path::/tmp/evil",
    "x\nEOF\ny",
    "{{ steps.x }} ${{ secrets.TOKEN }}",
    "ünïcode … 日本",
    " blanks around ",
    "",
    "-n",
    "a\tb",
    "!history %d",
)


def outputs(**values: object) -> OrderOutputs:
    """Return outputs, whose names have ``_`` for ``-``; those that begin with secret are secret."""
    return OrderOutputs(
        REPORT,
        tuple(
            OutputValue(name.replace("_", "-"), value, is_secret=name.startswith("secret"))
            for name, value in values.items()
        ),
        (),
    )


def evaluated(shell: str, text: str, name: str) -> str:
    """Return a variable after a shell evaluated a text, to the byte."""
    script = f'eval "$TEXT"; printf %s "${name}" | base64'
    done = subprocess.run(
        [shell, "-c", script], env={"TEXT": text, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return base64.b64decode(done.stdout).decode()


@pytest.mark.parametrize("shell", ["bash", "sh"])
@pytest.mark.parametrize("value", HOSTILE)
def test_a_shell_gets_the_very_value_and_runs_nothing_of_it(
    shell: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_outputs(outputs(bucketName=value, after="x"), "env", prefix="")

    text = capsys.readouterr().out

    assert evaluated(shell, text, "BUCKET_NAME") == value
    assert evaluated(shell, text, "AFTER") == "x"


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=12))
def test_any_text_is_the_same_in_a_shell_or_refused(value: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("click.echo", lambda text, **_: printed.append(text))
        if visible(value) != value:
            with pytest.raises(OrderkitError, match="control characters"):
                show_outputs(outputs(x=value), "env", prefix="")
            return
        show_outputs(outputs(x=value), "env", prefix="")
    assert evaluated("sh", "\n".join(printed), "X") == value


@pytest.mark.parametrize("value", HOSTILE)
def test_a_github_runner_reads_the_very_value(
    value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_outputs(outputs(bucketName=value, after="x"), "github", prefix="")

    assert step_outputs(capsys.readouterr().out) == {"bucketName": value, "after": "x"}


def test_no_value_can_end_its_own_lines(capsys: pytest.CaptureFixture[str]) -> None:
    ends = set()
    for _ in range(5):
        show_outputs(outputs(a="x"), "github", prefix="")
        ends.add(capsys.readouterr().out.splitlines()[-1])

    assert len(ends) == 5
    assert min(map(len, ends)) > 40


@pytest.mark.parametrize("format_", ["github", "env"])
def test_a_runner_masks_secrets_before_it_reads_them(
    format_: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")

    show_outputs(outputs(host="h", secretKey="one%\n  two\n"), format_, prefix="")

    captured = capsys.readouterr()
    assert captured.err.splitlines() == ["::add-mask::one%25", "::add-mask::two"]
    assert "add-mask" not in captured.out


@pytest.mark.parametrize("format_", ["json", "yaml"])
def test_programs_get_values_as_they_are(format_: str, capsys: pytest.CaptureFixture[str]) -> None:
    values = {"text": "yes", "number": 3, "flag": True, "list": ["a", 1.5], "odd": "\x1b[31m\u202e"}

    show_outputs(outputs(**values, later=None), format_, prefix="")

    captured = capsys.readouterr()
    read = (json.loads if format_ == "json" else yaml.safe_load)(captured.out)
    assert read["outputs"] == values
    assert (read["schema"], read["order"], read["commit"]) == (
        "orderkit.outputs/v1", "garage-ae86", "c" * 40,
    )  # fmt: skip
    assert captured.out.isascii()
    assert "'later' has no value" in captured.err


def test_gitlab_reads_what_it_would_not_change(capsys: pytest.CaptureFixture[str]) -> None:
    show_outputs(outputs(bucketName="a'b\"c #d=e", ports=[1, 2]), "gitlab", prefix="ORDER_")

    assert dotenv_report(capsys.readouterr().out) == {
        "ORDER_BUCKET_NAME": "a'b\"c #d=e",
        "ORDER_PORTS": "[1,2]",
    }


@pytest.mark.parametrize(
    ("format_", "values", "message"),
    [
        ("gitlab", {"a": "x\ny"}, "a' has line breaks"),
        ("gitlab", {"a": "$CI_JOB_TOKEN"}, "a' has blanks around it, or a '$'"),
        ("gitlab", {"a": " x"}, "a' has blanks around it, or a '$'"),
        ("gitlab", {"a": "x" * 6_000}, "takes 5000 bytes, and the outputs have 6002"),
        ("gitlab", {"secret": "hunter2"}, "GitLab masks none of its variables"),
        ("env", {"a": "\x1b]0;owned\x07"}, "control characters"),
        ("github", {"a": "x\x00"}, "control characters"),
        ("env", {"a": "x\r\n", "b": "\u202e"}, "2 problems"),
        ("env", {"path": "/usr/local"}, "would set PATH, which shells and tools obey"),
        ("env", {"ldPreload": "x.so"}, "would set LD_PRELOAD"),
        ("gitlab", {"ci_jobToken": "x"}, "would set CI_JOB_TOKEN"),
        ("env", {"aB": "1", "a_b": "2"}, "outputs 'aB' and 'a-b' are both A_B"),
    ],
)
def test_what_a_format_cannot_hold_is_refused_and_nothing_is_printed(
    format_: str,
    values: dict[str, object],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(OrderkitError) as refused:
        show_outputs(outputs(**values), format_, prefix="")

    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert capsys.readouterr().out == ""
    assert isinstance(refused.value, RefusedError) or refused.value.exit_code == 2


def test_names_as_kits_have_them_become_variables(capsys: pytest.CaptureFixture[str]) -> None:
    show_outputs(
        outputs(sshCommand="ssh u@h", dbEndpoint="d", backend_url="u", gitUrl="g", user="u"),
        "env",
        prefix="",
    )

    names = [line.partition("=")[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["SSH_COMMAND", "DB_ENDPOINT", "BACKEND_URL", "GIT_URL", "USER"]


def test_no_text_of_strangers_is_a_command_to_a_runner(capsys: pytest.CaptureFixture[str]) -> None:
    say("well\n::stop-commands::x\n \t::add-mask::a")
    say_wrapped("error: it fails: \n::set-output name=x::y")
    Progress(enabled=True)("waiting", "for\n::set-env name=PATH::/evil")

    captured = capsys.readouterr()
    for line in (captured.out + captured.err).splitlines():
        assert not line.strip().startswith("::")
    assert "set-output name=x" in captured.err


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[]))
    | st.sampled_from(["\ud800", "a\u2028b", "\x7f\x1b[0m", '"\\/']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(JSON)
def test_json_has_the_bytes_of_pythons_own(value: object) -> None:
    assert as_json(value) in (
        json.dumps(value, indent=2, ensure_ascii=False),
        json.dumps(value, indent=2),
    )
