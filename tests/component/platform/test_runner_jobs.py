"""One command as a Job in the cluster: as nobody, killed, repeated, refused; and from a portal."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import container
import pytest
import yaml
from changingpack import changing_pack
from commands import Command
from jobrunner import JOB, Attempt, JobRunner

from orderkit.adapters.embedded.platform import Ports
from orderkit.adapters.packfolder import reference_pack
from orderkit.cli.running import Running, RunRequest, running
from orderkit.core.baking import SENTINEL
from orderkit.core.jobcopy import job_copy
from orderkit.core.objects import CONFIG_MAP, Kind, Manifest, ObjectKey, dig
from orderkit.core.runnerjob import CREDENTIALS, NAMESPACE, SETTINGS, RunnerJob, manifest
from orderkit.flows.history import history
from orderkit.ports.forge import REASON_TRAILER

ROOM = Path(__file__).parents[3] / "day2" / "job"
SECRET = Kind("", "v1", "Secret")
_WHY = container.reason_not_possible()
pytestmark = pytest.mark.skipif(bool(_WHY), reason=f"no containers here: {_WHY}")

Start = Callable[..., list[Attempt]]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A platform of our own: its garage's stage is changed directly, without a review."""
    folder = tmp_path_factory.mktemp("jobs")
    request = RunRequest(folder / "state", changing_pack(folder / "pack"), Ports(0, 0, 0, 0), ())
    with running(request, on_step=lambda *_: None) as found:
        yield found


@pytest.fixture(scope="module")
def room(platform: Running) -> Running:
    """Put what Jobs need into the cluster, as a platform's people do."""
    settings, cluster = platform.settings, platform.platform.cluster
    kubeconfig = yaml.safe_load(Path(settings.kubeconfig).read_text())
    server = kubeconfig["clusters"][0]["cluster"]
    values = {
        b"FORGE_URL": settings.forge.url,
        b"PORTAL_URL": settings.portal.url,
        b"SERVICE_URL": settings.service.url,
    }
    for file in sorted(ROOM.glob("*.yaml")):
        text = SENTINEL.sub(lambda found: values[found[1]].encode(), file.read_bytes()).decode()
        text = text.replace("https://kubernetes.default.svc", server["server"])
        for each in yaml.safe_load_all(text):
            cluster.apply(each, owner="platform")
    authority = (Path(settings.kubeconfig).parent / server["certificate-authority"]).read_text()
    roots = {"name": "kube-root-ca.crt", "namespace": NAMESPACE}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": roots,
            "data": {"ca.crt": authority},
        },
        owner="platform",
    )
    files = {
        "forge-token": settings.forge.token_file,
        "portal-token": settings.portal.token_file,
        "service-secret": settings.service.token_file,
    }
    data = {
        name: base64.b64encode(Path(file).read_bytes()).decode()
        for name, file in files.items()
        if file
    }
    meta = {"name": CREDENTIALS, "namespace": NAMESPACE}
    secret: Manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}
    cluster.apply(secret, owner="platform")
    return platform


@pytest.fixture
def runner(room: Running, tmp_path: Path) -> Callable[..., JobRunner]:
    kubeconfig = yaml.safe_load(Path(room.settings.kubeconfig).read_text())
    token = kubeconfig["users"][0]["user"]["token"]

    def make(on_start: Callable[[int, subprocess.Popen[bytes]], None] | None = None) -> JobRunner:
        found = JobRunner(room.platform.cluster, tmp_path / "jobs", lambda *_: token)
        return JobRunner(found.cluster, found.folder, found.issue_token, on_start or found.on_start)

    return make


def start(room: Running, name: str, *arguments: str) -> None:
    job = manifest(RunnerJob(name, "registry.local/orderkit/orderkit:v0.1.0", arguments))
    room.platform.cluster.apply(job, owner="portal")


def placed(orderkit: Command, team: str) -> str:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    return f"garage-{team}"


def only(runner: JobRunner, job: str) -> Attempt:
    """Run a Job that needs one attempt."""
    attempts = runner.run(NAMESPACE, job)
    assert len(attempts) == 1, attempts[0].output
    return attempts[0]


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
    assert newest.who == "user:default/ann"


@pytest.mark.parametrize("moment_s", [0.05, 0.4, 0.8])
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
    start(room, job, "destroy", "--requester=user:default/ann", "--", order)

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
    done: list[str] = []

    def send(form: Path, *values: str) -> None:
        """Send a form as the portal does, and run the Job that it starts."""
        copy = copied(form, tmp_path / form.stem, room)
        ran = orderkit("run", str(copy), *(part for value in values for part in ("-p", value)))
        assert ran.code == 0, ran.err
        job = newest_job(room, team, done)
        assert only(runner(), job).code == 0
        done.append(job)

    send(pack / "templates/garage/template.yaml", f"team_name={team}", "stage=stage1")
    assert orderkit("status", order).code == 0
    seen = history(room.platform, order)[0].commit.id
    send(
        pack / "day2/garage/stage.yaml",
        f"order_id={order}",
        f"base_commit={seen}",
        "stage=stage3",
        "change_reason=race --day",
    )
    newest = history(room.platform, order)[0]
    assert [(each.path, each.new) for each in newest.fields] == [("stage", "stage3")]
    assert newest.said(REASON_TRAILER) == "race --day"
    send(pack / "day2/garage/end.yaml", f"order_id={order}", f"confirm={order}")
    assert orderkit("status", order).code == 1


def copied(form: Path, folder: Path, room: Running) -> Path:
    """Write the portal's copy of a form, baked, with what lies beside it."""
    values = {
        b"FORGE_HOST": room.settings.forge.url.partition("://")[2].encode(),
        b"SERVICE_URL": room.settings.service.url.encode(),
        b"PACK_COMMIT": b"1" * 40,
        b"REGISTRY": b"registry.local",
        b"CLUSTER_NAME": b"local",
    }
    folder.mkdir()
    data = job_copy(form.read_bytes(), name=form.name)
    copy = folder / form.name
    copy.write_bytes(SENTINEL.sub(lambda found: values[found[1]], data))
    skeleton = form.parent / "skeleton"
    if skeleton.is_dir():
        shutil.copytree(skeleton, folder / "skeleton")
    return copy


def newest_job(room: Running, team: str, done: list[str]) -> str:
    """Return the Job of this team's order that was not run yet."""
    (found,) = [
        each["metadata"]["name"]
        for each in room.platform.cluster.list(JOB, namespace=NAMESPACE).items
        if any(
            team in text for text in dig(each, "spec", "template", "spec")["containers"][0]["args"]
        )
        and each["metadata"]["name"] not in done
    ]
    return str(found)
