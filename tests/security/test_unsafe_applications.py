"""
What a pushed file makes Argo CD run: nothing. Orders are plain manifests, whatever lies beside.

The embedded deliverer does what the real one was recorded to do (``tests/conformance/delivery``);
``tests/e2e/test_security_argocd.py`` makes the same attacks on the real one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import roguery
import yaml
from commands import Command, Done, in_process
from platformsettings import settings_with

from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Manifest,
    ObjectKey,
    dig,
    metadata,
)
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.order import ledger, ledger_applications
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.platform.delivery_tree import SETTINGS, fitted
from orderkit.core.platform.installation import (
    ArgoCDSettings,
    CrossplaneSettings,
    Installation,
    PlatformTarget,
)
from orderkit.flows.argocd.refreshing import application_key, nudge, obstacle, refresh
from orderkit.flows.platform import Platform, ledger_snapshot, read_text, write_ledger
from orderkit.flows.repeating import until
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

TEAMS = ("ae86", "rx7")
PRIVATE_BASE = "resources: [{forge}/rx7/private.git//manifests]\n"
OTHER_TOOLS = {
    "a remote base of Kustomize": {"kustomization.yaml": PRIVATE_BASE},
    "the other name of a base": {"Kustomization": PRIVATE_BASE},
    "a chart": {
        "Chart.yaml": "apiVersion: v2\nname: a\nversion: 1.0.0\n",
        "templates/secret.yaml": "kind: {{ .Files.Get `/etc/passwd` }}\n",
    },
    "Jsonnet": {"read.jsonnet": "{kind: importstr '/etc/passwd'}"},
    "a plugin's file": {"plugin.yaml": "generate: {command: [cat, /etc/passwd]}\n"},
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A platform with two teams and an order of the first."""
    state = tmp_path_factory.mktemp("sources") / "state"
    request = EmbeddedRunRequest(state, reference_pack(), Ports(0, 0, 0, 0), TEAMS)
    with running(request, on_step=lambda *_: None) as site:
        roguery.place(site.platform, "garage", TEAMS[0])
        yield site


@pytest.fixture
def order(site: Running) -> OrderEntry:
    (entry,) = ledger.entries(ledger_snapshot(site.platform).blobs)
    return entry


@pytest.fixture
def orderkit(site: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``orderkit ARGUMENTS`` as on a cluster that somebody else made."""
    return in_process(written(site, "platform-of-a-cluster"), capsys)


def written(site: Running, name: str, **changes: Any) -> Path:
    """Write another platform.yaml for the same platform; return its path."""
    path = site.embedded.state.folder / f"{name}.yaml"
    wanted = {"installation": Installation(PlatformTarget.CLUSTER), **changes}
    path.write_text(settings_with(site.settings, **wanted).to_yaml())
    return path


def applications(platform: Platform) -> list[Manifest]:
    return list(platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items)


def push(platform: Platform, entry: OrderEntry, texts: dict[str, str | None], what: str) -> str:
    """Change files beside an order's XR, as a member of its team may."""
    head = platform.forge.head(entry.repository)
    assert head is not None
    blobs = platform.forge.tree(entry.repository, head)
    paths = {name: PurePosixPath("manifests", name) for name in texts}
    changes = [
        FileChange(paths[name], None if text is None else text.encode(), blobs.get(paths[name]))
        for name, text in texts.items()
    ]
    operation = Operation(f"{what}-{head[:8]}", roguery.REQUESTER, what)
    commit = platform.forge.write(entry.repository, changes, operation).commit
    nudge(platform.cluster, entry.order, commit)
    return commit


def await_application(
    platform: Platform, name: str, *path: str, expected: object, goal: str
) -> Manifest:
    """Wait until a field of an Application has a value."""
    found: Manifest = until(
        platform.clock,
        lambda: platform.cluster.get(application_key(name)) or {},
        lambda application: dig(application, *path) == expected,
        timeout_s=60,
        goal=goal,
        why_not=lambda application: str(dig(application, "status", default={})),
    )
    return found


def finding(done: Done, check: str) -> dict[str, str]:
    """Return one finding of ``orderkit doctor --json``."""
    return next(entry for entry in done.json["findings"] if entry["what"] == check)


def test_no_file_chooses_the_tool_of_any_application(site: Running, order: OrderEntry) -> None:
    found = {str(metadata(app)["name"]): app for app in applications(site.platform)}

    assert {"root", "ledger", "apis", "team-ae86", "team-rx7", order.order} <= set(found)
    assert [name for name, app in found.items() if not ledger_applications.is_pinned(app)] == []


@pytest.mark.parametrize("tool", OTHER_TOOLS)
def test_files_of_another_tool_change_nothing(site: Running, order: OrderEntry, tool: str) -> None:
    platform, forge_url = site.platform, site.settings.forge.url
    files = {name: text.format(forge=forge_url) if text == PRIVATE_BASE else text
             for name, text in OTHER_TOOLS[tool].items()}  # fmt: skip
    before = dig(platform.cluster.get(application_key(order.order)), "status", "resources")

    commit = push(platform, order, dict(files), "tools")
    application = await_application(
        platform, order.order, "status", "sync", "revision", expected=commit, goal="delivered"
    )
    push(platform, order, dict.fromkeys(files), "clean-up")

    assert dig(application, "status", "sync", "status") == "Synced"
    assert dig(application, "status", "sourceType") == "Directory"
    assert dig(application, "status", "conditions", default=[]) == []
    names = {resource["name"] for resource in dig(application, "status", "resources")}
    assert names == {resource["name"] for resource in before}


@pytest.mark.parametrize("name", [".argocd-source.yaml", ".argocd-source-{order}.yaml"])
def test_an_override_in_git_does_not_replace_the_tool(
    site: Running, order: OrderEntry, name: str
) -> None:
    """Argo CD merges such files into the source before it looks for a tool."""
    file = name.format(order=order.order)

    push(site.platform, order, {file: "directory: null\nkustomize: {namePrefix: x-}\n"}, "override")
    application = await_application(
        site.platform, order.order, "status", "sync", "status", expected="Unknown", goal="refused"
    )
    commit = push(site.platform, order, {file: None}, "clean-up")
    await_application(
        site.platform, order.order, "status", "sync", "revision", expected=commit, goal="mended"
    )

    (condition,) = dig(application, "status", "conditions")
    assert "multiple application sources defined: Kustomize,Directory" in condition["message"]
    reason = obstacle(site.platform.cluster, application)
    assert reason is not None
    assert "asks for another tool than the Application's: Kustomize,Directory" in reason.reason


@pytest.mark.parametrize(
    ("installation", "kept"),
    [
        (Installation(), set()),
        (Installation(crossplane=CrossplaneSettings("chart", "https://charts.example")), {"helm"}),
        (Installation(argocd=ArgoCDSettings(tools=("kustomize",))), {"kustomize"}),
        (Installation(PlatformTarget.IDPBUILDER), {"helm", "kustomize"}),
    ],
    ids=["a cluster", "Crossplane from its chart", "as platform.yaml says", "idpbuilder"],
)
def test_tools_that_nobody_needs_are_switched_off(
    installation: Installation, kept: set[str]
) -> None:
    rendered = fitted(read_folder(reference_pack()), installation, None)

    entries = yaml.safe_load(rendered[SETTINGS])["data"]

    off = {key for key, value in entries.items() if key.endswith(".enable") and value == "false"}
    assert off == {f"{tool}.enable" for tool in {"helm", "jsonnet", "kustomize"} - kept}


def test_settings_do_not_take_a_tool_from_somebody_else(site: Running, orderkit: Command) -> None:
    """Their Applications would be read as plain folders, and what is not there pruned."""
    cluster = site.platform.cluster
    settings = ObjectKey.from_json(
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "argocd-cm", "namespace": "argocd"}
    )
    theirs: Manifest = {
        "apiVersion": APPLICATION.api_version,
        "kind": APPLICATION.kind,
        "metadata": {
            "name": "shop",
            "namespace": ARGOCD_NAMESPACE,
            "annotations": {"argocd.argoproj.io/skip-reconcile": "true"},
        },
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://forge.example/shop.git", "path": "."},
            "destination": {"server": ledger_applications.IN_CLUSTER, "namespace": "shop"},
        },
    }
    keeping = Installation(PlatformTarget.CLUSTER, argocd=ArgoCDSettings(tools=("kustomize",)))
    file = written(site, "keeping", installation=keeping)

    assert orderkit("bootstrap", "--no-probe", platform_file=file).code == 0
    entries = (cluster.get(settings) or {})["data"]
    cluster.create(theirs, owner="somebody")
    cluster.patch(application_key("shop"), {"status": {"sourceType": "Kustomize"}}, owner="argocd")
    refused = orderkit("bootstrap", "--no-probe")
    kept = orderkit("bootstrap", "--no-probe", platform_file=file)
    cluster.delete(application_key("shop"))

    assert ("kustomize.enable" in entries, entries["jsonnet.enable"]) == (False, "false")
    assert refused.code == 4
    assert "Application 'shop' is rendered by kustomize" in refused.err
    assert "spec.argocd.tools: [kustomize]" in refused.err
    assert kept.code == 0, kept.err
    assert orderkit("bootstrap", "--no-probe").code == 0


@pytest.mark.parametrize("verb", [("bootstrap", "--no-probe"), ("platform", "upgrade")])
def test_what_an_earlier_release_wrote_is_reported_and_pinned(
    site: Running, orderkit: Command, order: OrderEntry, verb: tuple[str, ...]
) -> None:
    platform = site.platform
    names = unpin(platform, order)

    before = orderkit("doctor", "--json")
    done = orderkit(*verb)
    for name in names:
        await_application(
            platform, name, "spec", "source", "directory",
            expected=ledger_applications.MANIFESTS_ONLY, goal=f"{name}: pinned",
        )  # fmt: skip

    assert finding(before, "sources")["verdict"] == "fail"
    assert (
        f"2 Applications run any tool that a pushed file asks for, first {order.order}"
        in (finding(before, "sources")["detail"])
    )
    assert done.code == 0, done.err
    assert finding(orderkit("doctor", "--json"), "sources")["verdict"] == "ok"


def unpin(platform: Platform, order: OrderEntry) -> list[str]:
    """Write a team's Applications as release 0.2.0 did, and wait until they are live."""
    paths = [ledger.team_path(order.team), order.application_path]
    texts = {}
    for path in paths:
        documents = list(
            yaml.safe_load_all(read_text(platform.forge, platform.ledger, path, "main") or "")
        )
        dig(documents[-1], "spec", "source").pop("directory")
        texts[path] = yaml.safe_dump_all(documents)
    write_ledger(platform, dict(texts), Operation("0.2.0", roguery.REQUESTER, "as 0.2.0 did"))
    names = [ledger.team_application(order.team), order.order]
    refresh(platform.cluster, "ledger")
    for name in names:
        refresh(platform.cluster, ledger.team_application(order.team))
        await_application(
            platform, name, "spec", "source", "directory", expected=None, goal=f"{name}: as before"
        )
    return names
