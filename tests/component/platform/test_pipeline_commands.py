"""A pipeline reads outputs, waits for an order, and branches on why it is not there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePosixPath

import pytest
from commands import Command
from roguery import deliver_main
from viewedkit import PASSWORD, declared_outputs, put_secret

from ground import secrets
from ground.errors import EndedError
from ground.names import RepoId
from ground.objects.kube_objects import Kind, ObjectKey
from orderkit.core.order.end_record import Phase
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.order.awaiting import wait, wait_request
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.serve_platform import Running

XR_FILE = PurePosixPath("manifests/xgarage.yaml")
GARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")


@pytest.fixture(scope="module", autouse=True)
def declared(platform: Running) -> Iterator[None]:
    with declared_outputs(platform):
        yield


@pytest.fixture(autouse=True)
def own_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these commands read as secret, such as ``stage2``, is none of later tests' processes."""
    monkeypatch.setattr(secrets, "_forms", secrets._forms)  # noqa: SLF001 - the registry of the process


@pytest.fixture
def garage(orderkit: Command, team: str) -> str:
    done = orderkit("order", "garage", f"team_name={team}", "stage=stage2")
    assert done.code == 0, done.err
    return f"garage-{team}"


def push(platform: Running, team: str, change: tuple[str, str]) -> str:
    """Change the XR's text on main, as somebody does who may push."""
    forge, repo = platform.platform.forge, RepoId(team, f"garage-{team}")
    revision = forge.read(repo, XR_FILE, "main")
    assert revision is not None
    data = revision.text.replace(*change).encode()
    entry = FileChange(XR_FILE, data, revision.sha)
    commit = forge.write(repo, [entry], Operation(change[1], "user:default/eve", "push")).commit
    deliver_main(platform.platform, repo)
    return commit


# --- outputs


def test_outputs_are_variables_of_a_shell(orderkit: Command, garage: str, team: str) -> None:
    done = orderkit("outputs", garage)

    assert (done.code, done.out) == (0, f"BAY=garage-{team}\n")
    assert done.err == "note: secret outputs are left out without --secrets: password, stage\n"


def test_secrets_come_only_when_they_are_asked_for(
    platform: Running, orderkit: Command, garage: str, team: str
) -> None:
    put_secret(platform, team, owned=True)

    plain = [orderkit("outputs", garage, "--format", f) for f in ("env", "json", "yaml", "github")]
    secret = orderkit("outputs", garage, "--secrets", "--json")
    dotenv = orderkit("outputs", garage, "--secrets", "--format", "gitlab")

    assert all(PASSWORD not in done.out + done.err for done in (*plain, dotenv))
    assert secret.json["outputs"] == {
        "bay": f"garage-{team}",
        "password": PASSWORD,
        "stage": "stage2",
    }
    assert secret.json["secret"] == ["password", "stage"]
    assert PASSWORD not in secret.err
    assert (dotenv.code, "GitLab masks none" in dotenv.err) == (4, True)


def test_a_secret_of_somebody_else_is_refused(
    platform: Running, orderkit: Command, garage: str, team: str
) -> None:
    put_secret(platform, team, owned=False)

    done = orderkit("outputs", garage, "--secrets")

    assert (done.code, done.out) == (4, "")
    assert f"Secret garage-{team}/login is not one of {garage}" in done.err
    assert PASSWORD not in done.err


def test_an_order_that_is_not_ready_has_no_outputs(
    platform: Running, orderkit: Command, garage: str, team: str
) -> None:
    push(platform, team, ("stage2", "stage9"))
    until_phase(orderkit, garage, "Failing")

    done = orderkit("outputs", garage, "--json")

    assert (done.code, done.json["error"]["exitCode"]) == (11, 11)
    assert "is not Ready: Failing" in done.json["error"]["message"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"\xff\xfe", "'password' is not a text in its Secret"),
        (b"x" * 20_001, "has 20001 characters, more than 20000"),
    ],
    ids=["no text", "too long"],
)
def test_a_value_that_cannot_be_handed_on_is_refused_without_showing_it(
    platform: Running, orderkit: Command, garage: str, team: str, *, value: bytes, says: str
) -> None:
    put_secret(platform, team, owned=True, value=value)

    done = orderkit("outputs", garage, "--secrets")

    assert (done.code, done.out, says in done.err) == (2, "", True), done.err
    assert "xxx" not in done.err


@pytest.mark.parametrize("command", [("outputs",), ("wait",), ("wait", "--for", "gone")])
def test_an_order_that_never_was_has_a_code_of_its_own(
    orderkit: Command, command: tuple[str, ...], garage: str
) -> None:
    name, *options = command
    done = orderkit(name, f"{garage}x", *options)

    assert done.code == 14
    assert f"no order '{garage}x'" in done.err
    assert f"did you mean '{garage}'" in done.err or garage in done.err


def until_phase(orderkit: Command, order: str, phase: str) -> None:
    until(
        SystemClock(),
        lambda: orderkit("status", order, "--json").json["phase"],
        lambda found: found == phase,
        timeout_s=90,
        goal=f"{order} being {phase}",
    )


# --- wait


def test_waiting_for_what_is_ready_ends_at_once(orderkit: Command, garage: str) -> None:
    done = orderkit("wait", garage, "--for", "ready", "--timeout", "1m", "--json")

    assert done.code == 0, done.err
    assert (done.json["schema"], done.json["phase"], done.json["ready"]) == (
        "orderkit.wait/v1",
        "Ready",
        True,
    )
    assert len(done.json["revision"]) == 40


def test_waiting_for_a_commit_ends_when_it_is_delivered(
    platform: Running, orderkit: Command, garage: str, team: str
) -> None:
    commit = push(platform, team, ("stage2", "stage3"))

    done = orderkit("wait", garage, "--for", f"commit={commit[:10]}", "--json")

    assert (done.code, done.json["revision"]) == (0, commit), done.err
    assert orderkit("outputs", garage, "--secrets", "--json").json["outputs"]["stage"] == "stage3"


@pytest.mark.parametrize("goal", ["ready", "commit"])
def test_what_fails_is_given_up_after_a_while_and_says_why(
    platform: Running, orderkit: Command, garage: str, team: str, goal: str
) -> None:
    commit = push(platform, team, ("stage2", "stage9"))
    goal = f"commit={commit}" if goal == "commit" else goal

    done = orderkit("wait", garage, "--for", goal, "--fail-after", "1s", "--timeout", "2m")

    assert done.code == 11, done.err
    assert "stage9" in done.err
    assert f"orderkit trace {garage}" in done.err or "hint:" in done.err


def test_an_end_that_begins_while_a_commit_is_waited_for_is_said(
    platform: Running, garage: str, team: str
) -> None:
    commit = push(platform, team, ("stage2", "stage9"))

    def cut(step: Phase, _: str) -> None:
        if step == "emptying":
            raise InterruptedError

    def end_it(_: object) -> None:
        with suppress(InterruptedError):
            destroy(platform.platform, EndRequest(garage, "user:default/eve"), on_step=cut)

    with pytest.raises(EndedError):
        wait(
            platform.platform,
            wait_request(garage, f"commit={commit}", timeout_s=90, failing_s=80),
            on_wait=end_it,
        )


def test_what_is_not_ready_in_time_is_said_with_progress_on_stderr(
    platform: Running, orderkit: Command, garage: str, team: str
) -> None:
    push(platform, team, ("stage2", "stage9"))
    until_phase(orderkit, garage, "Failing")

    done = orderkit("wait", garage, "--timeout", "2")

    assert (done.code, done.out) == (5, "")
    assert "did not happen within 2 s: Failing" in done.err
    assert "waiting" in done.err.splitlines()[0]


def test_a_paused_order_is_not_waited_for(
    platform: Running, orderkit: Command, garage: str
) -> None:
    cluster, key = platform.platform.cluster, ObjectKey(GARAGE, garage)
    paused = {"metadata": {"annotations": {"crossplane.io/paused": "true"}}}
    cluster.patch(key, paused, owner="eve")

    done = orderkit("wait", garage, "--timeout", "1m")

    assert done.code == 11
    assert "is paused" in done.err


def test_waiting_for_the_end_sees_it_and_what_ended_says_so(orderkit: Command, garage: str) -> None:
    early = orderkit("wait", garage, "--for", "gone", "--timeout", "1s")
    assert (early.code, "nobody has ended it" in early.err) == (5, True)
    end = threading.Timer(0.5, lambda: orderkit("destroy", "--yes", garage))
    end.start()

    done = orderkit("wait", garage, "--for", "gone", "--timeout", "2m", "--json")
    end.join()

    assert done.code == 0, done.err
    assert (done.json["phase"], done.json["ready"]) == ("Ended", False)
    assert done.json["tombstone"].startswith("data/")
    for command in (("wait", garage), ("outputs", garage)):
        ended = orderkit(*command)
        assert (ended.code, f"{garage} has ended" in ended.err) == (13, True)


def test_a_mistyped_commit_is_answered_with_the_one_that_is_meant(
    orderkit: Command, garage: str
) -> None:
    meant = orderkit("status", garage, "--json").json["head"][:12]
    mistyped = meant[:-1] + ("0" if meant[-1] != "0" else "1")

    done = orderkit("wait", garage, "--for", f"commit={mistyped}")

    assert (done.code, f"did you mean {meant}?" in done.err) == (2, True), done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--for", "done"), "is not ready, gone or commit=SHA"),
        (("--for", "commit="), "is not ready, gone or commit=SHA"),
        (("--for", "commit=abcdef12"), "is none of the newest 200 commits"),
        (("--timeout", "soon"), "is not a duration"),
        (("--timeout", "nan"), "is not a duration"),
    ],
)
def test_a_wrong_request_is_usage(
    orderkit: Command, garage: str, arguments: tuple[str, ...], message: str
) -> None:
    done = orderkit("wait", garage, *arguments)

    assert (done.code, message in done.err) == (2, True), done.err
