"""
What pushed files make a real Argo CD run, with credentials on a real Gitea.

The lab's Argo CD has no Kustomize. A program of that name stands for it: it notes that it ran and
clones a remote base with what Argo CD lends it, as Kustomize does. A real plugin server stands
beside it. Each of the three bars is tried alone, after the attack was seen to work without any:
the source that names its tool, the settings, and a credential for one organisation. The tests
build on each other.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import labplatform
import pytest
import roguery
import yaml
from commands import as_process
from deliveries import Delivery
from lab.binaries import built
from lab.daemons import Daemon
from lab.realargocd import SETTINGS, Wishes
from labplatform import LabPlatform, bootstrapped

from ground.names import RepoId
from ground.objects.kube_objects import CONFIG_MAP, Manifest, ObjectKey, dig
from orderkit.core.order import ledger_applications
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.repeating import until
from orderkit.flows.team.connections import SECRET, credential_secret
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation

US, THEM = "ae86", "rx7"
PRIVATE = RepoId(THEM, "private")
CANARY = "what-nobody-else-may-read"
_KUSTOMIZE = """#!/bin/sh
echo "$(basename "$0") $*" >>{log}
[ "$1" = build ] || exit 0
url=$(sed -n 's/^resources: *\\[\\(.*\\)\\/\\/manifests\\]$/\\1/p' "$2/kustomization.yaml")
base=$(mktemp -d)
git clone -q "$url" "$base" || exit 1
cat "$base"/manifests/*.yaml
"""
_PLUGIN = """apiVersion: argoproj.io/v1alpha1
kind: ConfigManagementPlugin
metadata: {{name: plugin}}
spec:
  discover: {{fileName: plugin.txt}}
  generate:
    command: [sh, -c, "echo plugin >>{log}"]
"""
OTHER_TOOLS = {
    "a remote base": {"kustomization.yaml": "resources: [{private}//manifests]\n"},
    "a chart": {"Chart.yaml": "apiVersion: v2\nname: a\nversion: 1.0.0\n"},
    "Jsonnet": {"read.jsonnet": "{{kind: importstr '/etc/passwd'}}"},
    "a plugin's file": {"plugin.txt": "render me\n"},
}
OVERRIDES = [
    (".argocd-source.yaml", "kustomize: {namePrefix: x-}\n"),
    (f".argocd-source-garage-{US}.yaml", "directory: null\nkustomize: {namePrefix: x-}\n"),
    (".argocd-source.yaml", "directory: null\nhelm: {releaseName: x}\n"),
    (".argocd-source.yaml", "directory: null\nplugin: {name: plugin}\n"),
]


@dataclass
class Site:
    """The lab, and a log of what its repo-server ran."""

    lab: LabPlatform
    log: Path
    deliveries: list[Delivery] = field(default_factory=list)

    @property
    def private_url(self) -> str:
        return f"{self.lab.gitea.url}/{PRIVATE}.git"

    def ran(self) -> set[str]:
        """Return the names of the tools that ran."""
        return {line.split()[0] for line in self.log.read_text().splitlines()}

    def repository(self) -> Delivery:
        """Make a private repository of our team, with a ConfigMap and a remote base."""
        made = Delivery(self.lab.forge, self.lab.cluster, organisation=US)
        self.deliveries.append(made)
        base = OTHER_TOOLS["a remote base"]["kustomization.yaml"].format(private=self.private_url)
        made.push({"own.yaml": config_map("own", "own"), "kustomization.yaml": base})
        return made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("security-argocd")
    log = folder / "ran.log"
    log.touch()
    for part in ("lab", "tools", "plugin"):
        (folder / part).mkdir()
    for tool in ("kustomize", "helm"):
        program = folder / "tools" / tool
        program.write_text(_KUSTOMIZE.format(log=log))
        program.chmod(0o755)
    wishes = Wishes(settings=settings_without_bars(folder), tools=folder / "tools")
    with labplatform.serving(folder / "lab", teams=(US, THEM), wishes=wishes) as lab:
        site = Site(lab, log)
        for org in (US, THEM):
            lab.forge.ensure_org(org)
        lab.forge.ensure_repo(PRIVATE, description="", private=True)
        secret = FileChange(
            PurePosixPath("manifests", "a.yaml"), config_map("stolen", CANARY).encode(), None
        )
        lab.forge.write(PRIVATE, [secret], Operation("begin", "user:default/rx7", "ours alone"))
        with plugin_server(folder / "plugin", lab.argocd.plugin_sockets, log):
            yield site
        for delivery in site.deliveries:
            delivery.remove()


def settings_without_bars(folder: Path) -> Path:
    """Write Argo CD's settings as they were: no tool is switched off."""
    manifest = yaml.safe_load(SETTINGS.read_text())
    manifest["data"] = {k: v for k, v in manifest["data"].items() if not k.endswith(".enable")}
    path = folder / "argocd-cm.yaml"
    path.write_text(yaml.safe_dump(manifest))
    return path


@contextlib.contextmanager
def plugin_server(folder: Path, sockets: Path, log: Path) -> Iterator[None]:
    """Run Argo CD's own server of a plugin that claims folders with a file of its own."""
    (folder / "plugin.yaml").write_text(_PLUGIN.format(log=log))
    environment = {
        "PATH": os.environ["PATH"],
        "TMPDIR": str(folder),
        "ARGOCD_BINARY_NAME": "argocd-cmp-server",
        "ARGOCD_PLUGINSOCKFILEPATH": str(sockets),
    }
    command = [str(built("argocd") / "argocd"), f"--config-dir-path={folder}"]
    daemon = Daemon("plugin", command, log=folder / "server.log", environment=environment)
    try:
        daemon.wait_until((sockets / "plugin.sock").exists, timeout_s=60)
        yield
    finally:
        daemon.kill()  # it does not end by SIGTERM while the repo-server is connected


def config_map(name: str, value: str) -> str:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return yaml.safe_dump(manifest | {"data": {"value": value}})


def whole_forge(site: Site) -> Manifest:
    """Return the credential that release 0.2.0 gave Argo CD."""
    token = Path(str(site.lab.settings.forge.token_file)).read_text()
    data = {"type": "git", "url": site.lab.gitea.url, "username": "orderkit", "password": token}
    return credential_secret(ObjectKey(SECRET, "orderkit-forge", "argocd"), data)


def delivered(site: Site, name: str) -> Manifest | None:
    return site.lab.cluster.get(ObjectKey(CONFIG_MAP, name, "default"))


def settled(application: Manifest) -> bool:
    """Say whether Argo CD has delivered the Application or said why not."""
    phase = dig(application, "status", "operationState", "phase")
    return phase == "Succeeded" or bool(dig(application, "status", "conditions"))


def source_of(site: Site, delivery: Delivery, **more: object) -> dict[str, object]:
    url = f"{site.lab.gitea.url}/{delivery.repository}.git"
    return {"repoURL": url, "path": "manifests", "targetRevision": "main", **more}


def test_without_any_bar_a_remote_base_renders_another_teams_private_file(site: Site) -> None:
    site.lab.cluster.apply(whole_forge(site), owner="orderkit")
    delivery = site.repository()

    delivery.deliver("default", source=source_of(site, delivery))
    delivery.await_application(settled)

    assert dig(delivered(site, "stolen"), "data", "value") == CANARY
    assert "kustomize" in site.ran()
    site.lab.cluster.delete(delivery.key)
    # Until its Application is gone, Argo CD makes again what somebody deletes.
    until(
        SystemClock(),
        lambda: site.lab.cluster.get(delivery.key),
        lambda application: application is None,
        timeout_s=60,
        goal="the Application is gone",
    )
    # Of what it delivered, Argo CD deletes only what its watch has shown it by then.
    site.lab.cluster.delete(ObjectKey(CONFIG_MAP, "stolen", "default"))


def test_the_credential_of_a_team_reads_no_other_team(site: Site) -> None:
    """The tool still runs, but reads only what its team may read."""
    site.lab.cluster.apply(whole_forge(site), owner="orderkit")
    reader = site.lab.forge.add_reader(US)
    url = f"{site.lab.gitea.url}/{US}/"
    data = {"type": "git", "url": url, "username": reader.name, "password": reader.token}
    key = ObjectKey(SECRET, "of-the-team", "argocd")
    site.lab.cluster.apply(credential_secret(key, data), owner="orderkit")
    delivery = site.repository()

    delivery.deliver("default", source=source_of(site, delivery))
    application = delivery.await_application(settled)
    site.lab.cluster.delete(key)

    (condition,) = dig(application, "status", "conditions")
    assert condition["type"] == "ComparisonError"
    assert "kustomize build" in condition["message"]
    assert delivered(site, "stolen") is None


def test_a_source_that_names_its_tool_runs_no_other(site: Site) -> None:
    delivery = site.repository()
    site.log.write_text("")

    source = source_of(site, delivery, directory=ledger_applications.MANIFESTS_ONLY)
    delivery.deliver("default", source=source)
    application = delivery.await_application(settled)

    assert dig(application, "status", "sourceType") == "Directory"
    assert dig(delivered(site, "own"), "data", "value") == "own"
    assert (delivered(site, "stolen"), site.ran()) == (None, set())


def test_a_plugin_finds_what_it_looks_for_unless_the_source_names_its_tool(site: Site) -> None:
    """Nothing switches plugins off, so the source alone bars them."""
    delivery = site.repository()
    delivery.push({"plugin.txt": "render me\n", "kustomization.yaml": None})
    site.log.write_text("")

    delivery.deliver("default", source=source_of(site, delivery))
    delivery.await_application(lambda found: dig(found, "status", "sourceType") == "Plugin")
    ran = site.ran()
    site.log.write_text("")
    source = source_of(site, delivery, directory=ledger_applications.MANIFESTS_ONLY)
    delivery.deliver("default", source=source)
    delivery.await_application(lambda found: dig(found, "status", "sourceType") == "Directory")

    assert (ran, site.ran()) == ({"plugin"}, set())


@pytest.fixture(scope="module")
def order(site: Site) -> OrderEntry:
    """An order on the bootstrapped platform, which has no other Applications of its teams."""
    while site.deliveries:
        site.deliveries.pop().remove()
    with bootstrapped(site.lab) as platform:
        entry = roguery.place(platform, "garage", US)
    site.log.write_text("")
    return entry


def push(site: Site, entry: OrderEntry, files: dict[str, str | None]) -> str:
    """Change files beside an order's XR and have Argo CD look at them."""
    forge, cluster = site.lab.forge, site.lab.cluster
    head = forge.head(entry.repository)
    assert head is not None
    blobs = forge.tree(entry.repository, head)
    changes = [
        FileChange(path, None if text is None else text.encode(), blobs.get(path))
        for path, text in ((PurePosixPath("manifests", n), t) for n, t in files.items())
    ]
    operation = Operation(f"tools-{head[:8]}", roguery.REQUESTER, "tools")
    commit = forge.write(entry.repository, changes, operation).commit
    patch = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}}
    cluster.patch(application_key(entry.order), patch, owner="test")
    return commit


def await_order(site: Site, entry: OrderEntry, sync: str, revision: str) -> Manifest:
    found: Manifest = until(
        SystemClock(),
        lambda: site.lab.cluster.get(application_key(entry.order)) or {},
        lambda application: (
            (
                dig(application, "status", "sync", "status"),
                dig(application, "status", "sync", "revision"),
            )
            == (sync, revision)
        ),
        timeout_s=120,
        goal=f"{entry.order}: {sync} at {revision}",
        why_not=lambda application: str(dig(application, "status", default={})),
    )
    return found


@pytest.mark.parametrize("tool", OTHER_TOOLS)
def test_files_of_another_tool_change_nothing_of_an_order(
    site: Site, order: OrderEntry, tool: str
) -> None:
    files = {n: text.format(private=site.private_url) for n, text in OTHER_TOOLS[tool].items()}

    commit = push(site, order, dict(files))
    application = await_order(site, order, "Synced", commit)
    push(site, order, dict.fromkeys(files))

    assert dig(application, "status", "sourceType") == "Directory"
    assert dig(application, "status", "conditions", default=[]) == []
    assert [resource["kind"] for resource in dig(application, "status", "resources")] == ["XGarage"]
    assert site.ran() == set()


@pytest.mark.parametrize(("file", "text"), OVERRIDES)
def test_an_override_does_not_replace_the_tool_of_an_order(
    site: Site, order: OrderEntry, file: str, text: str
) -> None:
    push(site, order, {file: text})
    application = await_order(site, order, "Unknown", "main")
    mended = push(site, order, {file: None})
    await_order(site, order, "Synced", mended)

    (condition,) = dig(application, "status", "conditions")
    assert "multiple application sources defined" in condition["message"]
    assert site.ran() == set()


def test_an_override_that_reads_more_files_finds_jsonnet_switched_off(
    site: Site, order: OrderEntry
) -> None:
    files = {
        ".argocd-source.yaml": "directory: {include: '*'}\n",
        "read.jsonnet": "{kind: importstr '/etc/passwd'}",
    }

    commit = push(site, order, dict(files))
    application = await_order(site, order, "Synced", commit)
    push(site, order, dict.fromkeys(files))

    assert [resource["kind"] for resource in dig(application, "status", "resources")] == ["XGarage"]


def test_bootstrap_narrowed_the_credential_for_the_whole_forge(
    site: Site, order: OrderEntry
) -> None:
    done = as_process(site.lab.file)("doctor", "--json")

    findings = done.json["findings"]

    verdicts = {entry["what"]: entry["verdict"] for entry in findings}
    assert order.team == US
    assert (verdicts["sources"], verdicts["credentials"]) == ("ok", "ok")
