"""One command as a Job in the cluster: as nobody, killed, repeated, refused; and from a portal."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import container
import pytest
from changingpack import changing_pack
from commands import Command
from jobroom import Portal, furnish, only, runner_of
from jobrunner import JOB, Attempt, JobRunner

from ground.objects.kube_objects import CONFIG_MAP, ObjectKey, dig
from orderkit import __version__
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.core.portal.runner_job import NAMESPACE, SETTINGS, RunnerJob, manifest
from orderkit.flows.order.order_history import history
from orderkit.ports.forge import REASON_TRAILER, REQUESTER_TRAILER
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

_WHY = container.reason_not_possible()
pytestmark = pytest.mark.skipif(bool(_WHY), reason=f"no containers here: {_WHY}")

Start = Callable[..., list[Attempt]]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A platform of our own: its garage's stage is changed directly, without a review."""
    folder = tmp_path_factory.mktemp("jobs")
    request = EmbeddedRunRequest(
        folder / "state", changing_pack(folder / "pack"), Ports(0, 0, 0, 0), ()
    )
    with running(request, on_step=lambda *_: None) as found:
        yield found


@pytest.fixture(scope="module")
def room(platform: Running) -> Running:
    """Put what Jobs need into the cluster, as a platform's people do."""
    furnish(platform)
    return platform


@pytest.fixture
def runner(room: Running, tmp_path: Path) -> Callable[..., JobRunner]:
    return lambda on_start=None: runner_of(room, tmp_path / "jobs", on_start)


def start(room: Running, name: str, *arguments: str) -> None:
    job = manifest(RunnerJob(name, f"registry.local/orderkit/orderkit:v{__version__}", arguments))
    room.platform.cluster.apply(job, owner="portal")


def placed(orderkit: Command, team: str) -> str:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    return f"garage-{team}"


def condition(room: Running, name: str) -> tuple[str, str]:
    found = room.platform.cluster.get(ObjectKey(JOB, name, NAMESPACE))
    ((told),) = dig(found, "status", "conditions")
    return told["type"], told["reason"]


def test_a_change_runs_as_a_job_and_is_ready_at_its_end(
    orderkit: Command, room: Running, runner: Callable[..., JobRunner], team: str
) -> None:
    order, job = placed(orderkit, team), f"change-{team}"
    asked = ("--requester=user:default/ann", f"--operation=job-{team}", "--json", "--")
    start(room, job, "change", *asked, order, "stage=stage3")

    attempt = only(runner(), job)

    assert attempt.code == 0, attempt.output
    told = json.loads(attempt.output)
    assert (told["state"], told["ready"]) == ("committed", True)
    assert condition(room, job) == ("Complete", "CompletionsReached")
    newest = history(room.platform, order)[0]
    assert newest.commit.operation == f"job-{team}"
    assert newest.claims[REQUESTER_TRAILER] == "user:default/ann"  # the Job has no signing key


MORE_MOMENTS = [pytest.param(moment_s, marks=pytest.mark.soak) for moment_s in (0.05, 0.8)]


@pytest.mark.parametrize("moment_s", [0.4, *MORE_MOMENTS])
def test_a_job_that_is_killed_and_comes_again_changes_once(
    orderkit: Command,
    room: Running,
    runner: Callable[..., JobRunner],
    team: str,
    moment_s: float,
) -> None:
    order, job = placed(orderkit, team), f"killed-{team}"
    asked = (f"--operation=job-{team}", "--no-wait", "--json", "--")
    start(room, job, "change", *asked, order, "stage=stage3")

    def kill_the_first(attempt: int, process: subprocess.Popen[bytes]) -> None:
        if attempt == 1:
            try:
                process.wait(moment_s)
            except subprocess.TimeoutExpired:
                container.kill(process)

    attempts = runner(kill_the_first).run(NAMESPACE, job)

    assert attempts[-1].code == 0, attempts[-1].output
    assert condition(room, job)[0] == "Complete"
    changes = [each for each in history(room.platform, order) if each.fields and not each.first]
    assert len(changes) == 1, "whatever was killed, it is in Git once"


def test_a_refused_change_is_not_tried_again(
    orderkit: Command, room: Running, runner: Callable[..., JobRunner], team: str
) -> None:
    order, job = placed(orderkit, team), f"refused-{team}"
    start(room, job, "change", "--", order, "stage=stage9")

    attempt = only(runner(), job)

    assert attempt.code == 2
    assert "stage9" in attempt.output
    assert condition(room, job) == ("Failed", "PodFailurePolicy")


def test_what_does_not_answer_is_tried_again_until_the_limit(
    room: Running, runner: Callable[..., JobRunner], team: str
) -> None:
    job = f"lonely-{team}"
    start(room, job, "change", "--", f"garage-{team}", "stage=stage3")
    settings = room.platform.cluster.get(ObjectKey(CONFIG_MAP, SETTINGS, NAMESPACE))
    assert settings is not None
    good = settings["data"]["platform.yaml"]
    away = good.replace(room.settings.forge.url, "http://127.0.0.1:9")
    patch_settings(room, away)

    attempts = runner().run(NAMESPACE, job)

    patch_settings(room, good)
    assert [each.code for each in attempts] == [1, 1, 1, 1, 1]
    assert condition(room, job) == ("Failed", "BackoffLimitExceeded")


def patch_settings(room: Running, text: str) -> None:
    key = ObjectKey(CONFIG_MAP, SETTINGS, NAMESPACE)
    room.platform.cluster.patch(key, {"data": {"platform.yaml": text}}, owner="platform")


def test_an_end_runs_as_a_job_and_the_job_goes_when_its_time_is_over(
    orderkit: Command, room: Running, runner: Callable[..., JobRunner], team: str
) -> None:
    order, job = placed(orderkit, team), f"end-{team}"
    start(room, job, "destroy", f"--confirm={order}", "--requester=user:default/ann", "--", order)

    attempt = only(runner(), job)

    assert attempt.code == 0, attempt.output
    assert orderkit("status", order).code == 1
    assert not runner().sweep(NAMESPACE, job, after_s=3599)
    assert runner().sweep(NAMESPACE, job, after_s=3600)
    assert room.platform.cluster.get(ObjectKey(JOB, job, NAMESPACE)) is None


def test_the_container_is_closed(tmp_path: Path) -> None:
    """What the tests above run in is a container: no root, nothing writable, nothing foreign."""
    _, image = container.our_image()
    tries = ("id -u", "touch /x || echo closed", "touch /scratch/x && echo open", "cat /etc/shadow")
    script = "; ".join(tries)
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o777)
    scratch.chmod(0o777)
    mounts = [*image, container.Mount(scratch, "/scratch", writable=True)]
    run = container.Run(["bash", "-c", script], {"PATH": "/usr/bin"}, 65532, mounts)

    process = container.start(run, tmp_path / "root", tmp_path / "log")
    process.wait(30)

    told = (tmp_path / "log").read_text()
    assert told.startswith("65532\n")
    assert "closed" in told
    assert "open" in told
    assert "root:" not in told


def test_the_portals_forms_order_change_and_end_by_jobs(
    room: Running, runner: Callable[..., JobRunner], orderkit: Command, team: str, tmp_path: Path
) -> None:
    pack, order = reference_pack(), f"garage-{team}"
    portal = Portal(room, orderkit, runner(), tmp_path / "forms")
    portal.ignore_others()

    def send(form: str, *values: str) -> None:
        assert portal.send(pack / form, *values).code == 0

    send("templates/garage/template.yaml", f"team_name={team}", "stage=stage1")
    assert orderkit("status", order).code == 0
    seen = history(room.platform, order)[0].commit.id
    asked = (f"order_id={order}", f"base_commit={seen}", "stage=stage3")
    send("day2/garage/stage.yaml", *asked, "change_reason=race --day for $$ and $(HOME)")
    newest = history(room.platform, order)[0]
    assert [(each.path, each.new) for each in newest.fields] == [("stage", "stage3")]
    assert newest.claims[REASON_TRAILER] == "race --day for $$ and $(HOME)"
    send("day2/garage/end.yaml", f"order_ref=component:default/{order}", f"confirm={order}")
    assert orderkit("status", order).code == 1
