"""
A reader walks through every command and every operation of the service, looking for Secrets.

The garage of this platform does everything wrong that a station can do with a Secret: it puts the
values of a required, a live and a rendered one into its ConfigMap, status, events and refusals. A
command or an operation that is new has to be added to `COMMANDS` or `OPERATIONS`, or excluded here
with a reason.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from bays import Bay, new_bay
from changingpack import changing_pack
from commands import Command, in_process
from pullhand import Hand

from ground import secrets
from ground.objects.kube_objects import Kind, ObjectKey
from ground.secrets import MASK, forms_of
from orderkit.cli import command_list
from orderkit.cli.connecting import SECRET_HEADER, service_options, token
from orderkit.core.platform.notification_settings import read_notifications
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.plan.pull_requests import keep_planned
from orderkit.flows.repeating import until
from orderkit.web.auditing import AuditLog
from orderkit.web.operation_table import operations
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

SECRET = Kind("", "v1", "Secret")
REQUIRED, LIVE, RENDERED = "Kan4rie-required/7", "Kan4rie-live+8", "Kan4rie-rendered 9"
PIN = "pin-815"
"""Easy to guess: found by where it comes from."""


def hashed(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


CANARIES = {
    form
    for value in (REQUIRED, LIVE, RENDERED)
    for text in (value, *((hashed(value), value[::-1]) if value != RENDERED else ()))
    for form in forms_of(text)
}
"""What a station makes of its own constants alone is not a secret: the pack has it in the open."""
CANARIES |= {PIN}
STATION = f'''"""Everything that a station should not do with Secrets."""

from __future__ import annotations

import base64
import hashlib

from .bay import station as bay


def station(request):
    response = bay(request)
    response.require("vault", "v1", "Secret", match_name="vault", namespace="default")
    vault, made = request.required_resource("vault"), request.observed_resource("made")
    password = _value(vault, "password")
    live = _value(made, "live")
    spec, home = request.xr["spec"], f"garage-{{request.xr['spec']['teamName']}}"
    if spec.get("note") == "refuse":
        response.fatal(f"{{password}} and {{live}} are too weak")
    if request.observed_resource("namespace") is None:
        return response
    rendered = {RENDERED!r}
    meta = {{"name": "made", "namespace": home}}
    strings = {{"rendered": rendered, "changing": f"{{rendered}} {{spec['stage']}}"}}
    secret = {{"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": strings}}
    response.want("made", secret)
    data = {{"stage": spec["stage"]}}
    for name, value in (("required", password), ("live", live), ("rendered", rendered)):
        data[name] = f"postgres://u:{{value}}@h/{{spec['stage']}}"
        data[f"{{name}}-hash"] = hashlib.sha256(value.encode()).hexdigest()
        data[f"{{name}}-back"] = value[::-1]
        response.warning(f"{{value}} is weak")
    meta = {{"name": "sheet", "namespace": home, "annotations": {{"note": password}}}}
    sheet = {{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}}
    response.want("sheet", sheet)
    response.add_condition("Weak", "True", "Password", f"{{password}} is weak")
    user, pin = _value(vault, "username"), _value(vault, "pin")
    response.merge_status({{"stage": f"{{spec['stage']}} {{password}} {{live}}"}})
    response.merge_status({{"address": f"postgres.{{home}}.example.org"}})
    response.merge_status({{"connection": f"postgres://{{user}}:{{pin}}@postgres.{{home}}"}})
    return response


def _value(secret, key):
    text = ((secret or {{}}).get("data") or {{}}).get(key, "")
    return base64.b64decode(text).decode()
'''


def leaking_pack(target: Path) -> Path:
    """Return a pack whose garage does everything wrong."""
    changing_pack(target)
    (target / "stations" / "garage" / "station.py").write_text(STATION)
    rbac = target / "gitops" / "apis" / "garage" / "rbac.yaml"
    roles = list(yaml.safe_load_all(rbac.read_text()))
    for role in roles:
        role["rules"][0]["resources"] += ["secrets", "configmaps"]
    rbac.write_text(yaml.safe_dump_all(roles))
    xrd = target / "gitops" / "apis" / "garage" / "definition.yaml"
    defined = yaml.safe_load(xrd.read_text())
    status = defined["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    status["properties"] |= {name: {"type": "string"} for name in ("address", "connection")}
    xrd.write_text(yaml.safe_dump(defined, sort_keys=False))
    kit = target / "templates" / "garage" / "kit.yaml"
    declared = yaml.safe_load(kit.read_text())
    declared["spec"]["outputs"] += [
        {"name": name, "path": name} for name in ("address", "connection", "stage")
    ]
    kit.write_text(yaml.safe_dump(declared, sort_keys=False))
    return target


@dataclass(frozen=True)
class Site:
    """The platform, its order, its service, and who looks."""

    running: Running
    bay: Bay
    url: str
    folder: Path

    @property
    def order(self) -> str:
        return self.bay.order

    def ask(self, method: str, path: str, body: object = None) -> requests.Response:
        headers = {SECRET_HEADER: token(self.running.settings.service)}
        with requests.Session() as session:
            session.trust_env = False
            return session.request(
                method,
                f"{self.url}{path}",
                json=body,
                headers=headers,
                timeout=120,
                allow_redirects=False,
            )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("canaries")
    pack = leaking_pack(folder / "pack")
    request = EmbeddedRunRequest(
        folder / "state", pack, Ports(0, 0, 0, 0), (),
        notifications=read_notifications(NOTIFICATIONS, Path),
    )  # fmt: skip
    with running(request, on_step=lambda *_: None) as found:
        cluster = found.platform.cluster
        vault = a_secret("vault", "default", password=REQUIRED, username="postgres", pin=PIN)
        cluster.create(vault, owner="test")
        bay = new_bay(found.platform)
        assert await_commit(found.platform, bay.order, bay.head, timeout_s=180).ready
        write_live(found, bay)
        audit = AuditLog(folder / "audit.log")
        options = replace(
            service_options(found.settings, audit=audit), requests_per_minute=100_000,
            portal_url="https://portal.example.com", open_forms=True,
        )  # fmt: skip
        server = HttpServer(service_app(found.platform, options), bind("service", 0))
        server.start()
        yield Site(found, bay, server.url, folder)
        server.stop()


def a_secret(name: str, namespace: str, **values: str) -> dict[str, Any]:
    data = {key: base64.b64encode(text.encode()).decode() for key, text in values.items()}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}


def write_live(running: Running, bay: Bay) -> None:
    """Write into the composed Secret as an operator does; wait until the station has seen it."""
    cluster, home = running.platform.cluster, f"garage-{bay.name}"
    cluster.apply(a_secret("made", home, live=LIVE), owner="operator")
    sheet = ObjectKey(Kind("", "v1", "ConfigMap"), "sheet", home)
    until(
        running.platform.clock, lambda: json.dumps(cluster.get(sheet)),
        lambda text: LIVE in text and REQUIRED in text, timeout_s=120, goal="the leak",
    )  # fmt: skip


def leaks(text: str) -> list[str]:
    """Return the canaries in a text."""
    return sorted(form for form in CANARIES if form in text)


COMMANDS: Mapping[str, list[str] | str] = {
    "up": "starts a platform",
    "bootstrap": "shows steps and versions",
    "doctor": ["doctor"],
    "support-bundle": ["support-bundle FOLDER/support.tar.gz", "support-bundle /nowhere/x.tar.gz"],
    "demo": "has a platform of its own",
    "order": "writes; what it reports is `status`",
    "register": "writes the ledger from Git",
    "adopt": "reads repositories; a living XR is what Git gets",
    "list": ["list", "list --json"],
    "log": ["log", "log --json"],
    "status": ["status ORDER", "status ORDER --json"],
    "outputs": [
        "outputs ORDER",
        "outputs ORDER --format yaml",
        "outputs ORDER --secrets --format gitlab",
    ],
    "wait": [
        "wait ORDER --timeout 2",
        "wait ORDER --timeout 2 --json",
        "wait ORDER --for gone --timeout 1",
    ],
    "trace": ["trace ORDER", "trace ORDER --json"],
    "events": ["events ORDER", "events ORDER --json"],
    "plan": [
        "plan ORDER stage=stage2",
        "plan ORDER stage=stage2 --full --json",
        "plan ORDER stage=stage2 --markdown --graph FOLDER/a.svg --record FOLDER/a.json",
        "plan ORDER stage=stage3 --graph FOLDER/a.mmd",
        "plan ORDER note=refuse",
        "plan ORDER note=refuse --json --graph FOLDER/a.md",
        "plan ORDER stage=stage2 --snapshot FOLDER/a.json --pack PACK",
        "plan --kit garage --pack OTHER --record FOLDER/b.json --json",
        "plan --kit garage --pack OTHER --markdown",
    ],
    "campaign": [
        "campaign plan FOLDER/shown.yaml",
        "campaign plan FOLDER/shown.yaml --json",
        "campaign plan FOLDER/refused.yaml",
        "campaign propose FOLDER/shown.yaml",
        "campaign status",
    ],
    # Before `change` commits: merging takes half a minute to say that it conflicts.
    "merge": ["merge ORDER 1", "merge ORDER 999 --json"],
    "approve": ["approve ORDER", "approve ORDER --pull 1", "approve ORDER --pull 999 --json"],
    "change": [
        "change ORDER stage=stage2 --dry-run",
        "change ORDER stage=stage2 --dry-run --json",
        "change ORDER stage=stage3 --pr",
        "change ORDER note=refuse",
        "change ORDER note=hello",
        "change ORDER note=refuse --direct --timeout 2",
    ],
    "approvals": ["approvals", "approvals --json"],
    "lease": [
        "lease ORDER",
        "lease ORDER --json",
        "lease extend ORDER 9w --reason ORDER",
        "lease sweep --dry-run --json",
    ],
    "repair": ["repair ORDER --dry-run", "repair ORDER --json"],
    "revert": ["revert ORDER HEAD --dry-run", "revert ORDER HEAD --json"],
    "cost": ["cost", "cost --csv", "cost --json"],
    "prices": "reads files of its caller",
    "history": ["history ORDER", "history ORDER --json"],
    "destroy": "reports the phases and names of objects",
    "backup": ["backup FOLDER/backup", "backup FOLDER/backup --json"],
    "restore": ["restore FOLDER/backup", "restore FOLDER/backup --json"],
    "team": "knows teams",
    "kit": "reads a pack's files, which hold no Secret of a cluster",
    "init": "writes a pack",
    "serve": "is `OPERATIONS`",
    "mcp": "shows what `OPERATIONS` answer with",
    "notify": ["notify show", "notify show --json"],
    "console": "makes a link to sign in",
    "functions": "reads a pack's files and images of functions",
    "stations": "answers Crossplane, which needs the values",
    "access": "makes tokens",
    "forge": "reads and writes a repository of its own on the forge",
    "platform": "reads the pack and Applications",
    "validate": "reads files of its caller",
    "schema": "is made of our own classes",
    "edit": "reads files of its caller",
    "render": "reads files of its caller",
    "run": "runs a template",
}
NOTIFICATIONS = {
    "channels": {"pulls": {"type": "pullRequest"}},
    "routes": [{"to": ["pulls"]}],
    "failingAfter": "0s",
}
PLAN = {"values": {"stage": "stage2"}}
OPERATIONS: Mapping[str, tuple[str, str, object] | str] = {
    "runTask": "writes; reports an order's address",
    "registerOrder": "writes the ledger from Git",
    "planOrder": (
        "POST",
        "/v1/kits/garage/plan",
        {"values": {"team_name": "TEAM", "stage": "stage2"}},
    ),
    "listOrders": ("GET", "/v1/orders", None),
    "streamOrders": "sends the rows that listOrders answers with",
    "getOrder": ("GET", "/v1/orders/ORDER", None),
    "viewOrder": ("GET", "/v1/orders/ORDER/view", None),
    "revealOutputs": ("POST", "/v1/orders/ORDER/outputs", {"names": ["namespace"]}),
    "listKits": ("GET", "/v1/kits", None),
    "listKitTeams": ("GET", "/v1/kits/garage/teams", None),
    "listActivity": ("GET", "/v1/activity", None),
    "getTeam": ("GET", "/v1/teams/TEAM", None),
    "teamStatement": ("GET", "/v1/teams/TEAM/statement", None),
    "traceOrder": ("GET", "/v1/orders/ORDER/trace", None),
    "orderEvents": ("GET", "/v1/orders/ORDER/events", None),
    "planChange": ("POST", "/v1/orders/ORDER/plan", PLAN),
    "orderHistory": ("GET", "/v1/orders/ORDER/history", None),
    "changeOrder": ("POST", "/v1/orders/ORDER/changes", {**PLAN, "dryRun": True}),
    "revertCommit": ("POST", "/v1/orders/ORDER/reverts", {"commit": "HEAD", "dryRun": True}),
    "changeForm": ("GET", "/v1/orders/ORDER/changes/stage/form", None),
    "mergePull": ("POST", "/v1/orders/ORDER/pulls/999/merge", {}),
    "decideApproval": ("POST", "/v1/orders/ORDER/approval", {"decision": "approve"}),
    "listApprovals": ("GET", "/v1/approvals", None),
    "listCampaigns": ("GET", "/v1/campaigns", None),
    "orderLease": ("GET", "/v1/orders/ORDER/lease", None),
    "extendLease": ("POST", "/v1/orders/ORDER/lease", {"by": "9w", "reason": "a race"}),
    "endForm": ("GET", "/v1/orders/ORDER/end/form", None),
    "endOrder": "ends the order",
    "orderEnd": ("GET", "/v1/orders/ORDER/end", None),
    "endPreview": ("GET", "/v1/orders/ORDER/end/preview", None),
    "gate": ("GET", "/v1/gates/garage/ORDER", None),
    "readSettings": "parses the caller's own text by a kit's schema; asks no cluster",
    "giteaWebhook": "plans pull requests in the background: what it posts is looked at below",
    "alive": ("GET", "/healthz", None),
    "ready": ("GET", "/readyz", None),
    "metrics": ("GET", "/metrics", None),
}


def test_every_command_and_operation_is_looked_at_or_excluded() -> None:
    assert COMMANDS.keys() == command_list.COMMANDS.keys()
    assert OPERATIONS.keys() == {operation.id for operation in operations()}


def test_no_command_shows_a_secret(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    orderkit = in_process(site.running.embedded.state.folder / "platform.yaml", capsys)
    other = site.folder / "other"
    subprocess.run(["cp", "-r", site.folder / "pack", other], check=True)
    station = other / "stations" / "garage" / "station.py"
    station.write_text(station.read_text().replace("@h/", "@other/"))
    pull = Hand(site.running.settings, site.bay).edits("spec:", "spec:\n  note: refuse")
    for name, values in {"shown": {"stage": "stage2"}, "refused": {"note": "refuse"}}.items():
        (site.folder / f"{name}.yaml").write_text(_campaign(f"{name}-values", values))
    shown: dict[str, str] = {}
    for lines in COMMANDS.values():
        for line in lines if isinstance(lines, list) else ():
            shown[line] = _run(orderkit, site, line)

    with tarfile.open(site.folder / "support.tar.gz") as archive:
        bundled = {entry.name: archive.extractfile(entry) for entry in archive}
        texts = {name: part.read().decode() for name, part in bundled.items() if part}
    tokens = [
        path.read_text().strip()
        for path in (site.running.embedded.state.folder / "credentials").iterdir()
        if path.is_file()
    ]
    assert {name: leaks(text) for name, text in texts.items() if leaks(text)} == {}
    assert [name for name, text in texts.items() if any(token in text for token in tokens)] == []
    assert site.order in texts["orderkit-support/orders.json"]
    assert site.order in texts["orderkit-support/events.json"]

    written = [path for path in site.folder.glob("?.*") if path.is_file()]
    assert {line: leaks(text) for line, text in shown.items() if leaks(text)} == {}
    assert {path.name: leaks(path.read_text()) for path in written if leaks(path.read_text())} == {}
    assert len(written) == 5
    assert pull.number == 1
    for line in ("merge ORDER 1", "approve ORDER --pull 1"):
        assert "is not merged, by its plan" in shown[line], shown[line]
        assert "too weak" in shown[line]
    assert MASK in shown["plan ORDER stage=stage2"]
    assert "too weak" in shown["campaign plan FOLDER/refused.yaml"]
    assert "too weak" in shown["plan ORDER note=refuse"] + shown["status ORDER"]


def test_an_output_with_a_secret_in_it_is_read_with_secrets_only(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "_forms", secrets._forms)  # noqa: SLF001 - of this process
    orderkit = in_process(site.running.embedded.state.folder / "platform.yaml", capsys)

    refused = orderkit("outputs", site.order, "--json")
    read = orderkit("outputs", site.order, "--json", "--secrets")

    assert refused.code == 4, refused.err
    assert "output 'connection'" in refused.err
    assert "has the value of a Secret in it" in refused.err
    assert leaks(refused.out + refused.err) == []
    assert (read.code, read.json["secret"]) == (0, ["connection", "stage"])
    assert read.json["outputs"]["address"].startswith("postgres.garage-")
    assert leaks(read.out) != []
    assert leaks(read.err) == []


def _campaign(name: str, values: Mapping[str, str]) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "orderkit.dev/v1alpha1",
            "kind": "Campaign",
            "metadata": {"name": name},
            "spec": {
                "reason": "to look at what it shows",
                "what": {"fields": {"set": values}},
                "which": {"kit": "garage"},
            },
        }
    )


def _run(orderkit: Command, site: Site, line: str) -> str:
    words = {
        "ORDER": site.order, "HEAD": site.bay.head, "FOLDER": str(site.folder),
        "PACK": str(site.folder / "pack"), "OTHER": str(site.folder / "other"),
    }  # fmt: skip
    for name, text in words.items():
        line = line.replace(name, text)
    done = orderkit(*line.split())
    return f"{done.code}\n{done.out}\n{done.err}"


def test_no_operation_answers_with_a_secret(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    answers = {}
    for name, request in OPERATIONS.items():
        if not isinstance(request, str):
            method, path, body = json.loads(
                json.dumps(request)
                .replace("ORDER", site.order)
                .replace("TEAM", site.bay.repo.owner)
                .replace("HEAD", site.bay.head)
            )
            answer = site.ask(method, path, body)
            answers[name] = f"{answer.status_code} {answer.headers} {answer.text}"

    assert {name: leaks(text) for name, text in answers.items() if leaks(text)} == {}
    assert MASK in answers["planChange"]
    assert answers["planOrder"].startswith("200 ")
    assert leaks((site.folder / "audit.log").read_text() + caplog.text) == []


def test_the_forge_holds_no_secret(site: Site) -> None:
    """Bodies, comments, statuses, commits: whatever was written there, and by whom."""
    hand = Hand(site.running.settings, site.bay)
    pulls = [hand.edits("stage1", "stage2"), hand.edits("spec:", "spec:\n  note: refuse")]
    for pull in pulls:
        keep_planned(site.running.platform, site.bay.repo, pull.number)

    comments = [comment["body"] for pull in pulls for comment in hand.comments(pull)]
    statuses = [hand.status(pull.head_commit) for pull in pulls]
    assert [leaks(text) for text in (*comments, repr(statuses))] == [[], [], []]
    assert MASK in comments[0]
    forge = site.running.embedded.state.folder / "forge"
    databases = [path.read_bytes() for path in forge.glob("*.sqlite*")]
    assert databases
    repositories = [path for path in forge.rglob("*.git") if path.stem != "pack"]
    assert any(path.stem == site.order for path in repositories)
    stored = [*databases, *map(_objects, repositories)]
    assert {form for data in stored for form in CANARIES if form.encode() in data} == set()


def _objects(repository: Path) -> bytes:
    """Return all objects of a repository, one after the other."""
    command = ["git", "cat-file", "--batch-all-objects", "--batch"]
    return subprocess.run(command, cwd=repository, check=True, capture_output=True).stdout


def test_no_row_of_the_live_model_holds_a_secret(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither while its texts are being checked, nor afterwards."""
    orderkit = in_process(site.running.embedded.state.folder / "platform.yaml", capsys)
    _run(orderkit, site, "change ORDER note=refuse --direct --timeout 2")
    shown: list[str] = []

    def reason() -> str:
        answer = site.ask("GET", "/v1/orders")
        shown.append(answer.text)
        (row,) = [row for row in answer.json()["orders"] if row["order"] == site.order]
        return str(row["reason"])

    masked = until(
        site.running.platform.clock, reason,
        lambda text: "too weak" in text, timeout_s=60, goal="the reason, checked",
    )  # fmt: skip

    assert MASK in masked
    assert [leaks(text) for text in shown if leaks(text)] == []
