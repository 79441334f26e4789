"""``orderkit support-bundle`` where nothing answers, and what it leaves out of platform.yaml."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
import yaml
from commands import as_process

from orderkit.core.platform.settings import redacted

PLATFORM = """
apiVersion: orderkit.dev/v1alpha1
kind: Platform
metadata: {name: lost}
spec:
  forge: {url: 'http://127.0.0.1:9', tokenFile: forge-token}
  cluster: {kubeconfig: kubeconfig}
"""
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: 'http://127.0.0.1:9'}}]
users: [{name: x, user: {token: hunter2hunter2}}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "platform.yaml").write_text(PLATFORM)
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    (tmp_path / "forge-token").write_text("s3cr3ts3cr3ts3cr3t")
    return tmp_path


def test_a_bundle_is_made_although_nothing_answers(folder: Path) -> None:
    log = folder / "service.log"
    log.write_text("old\n" * 400_000 + "push with s3cr3ts3cr3ts3cr3t failed\n")
    file = folder / "support.tar.gz"
    done = as_process(folder / "platform.yaml")(
        "support-bundle", str(file), "--log", str(log), "--json"
    )

    assert done.code == 0, done.err
    assert done.json["errors"].keys() == {"orders.json", "events.json"}
    assert file.stat().st_mode & 0o077 == 0
    with tarfile.open(file) as archive:
        names = archive.getnames()
        assert [name.removeprefix("orderkit-support/") for name in names] == done.json["parts"]
        parts = {name: archive.extractfile(name) for name in names}
        texts = {name: part.read().decode() for name, part in parts.items() if part}
    assert "127.0.0.1:9" in texts["orderkit-support/errors.json"]
    doctor = json.loads(texts["orderkit-support/doctor.json"])
    assert {row["what"]: row["verdict"] for row in doctor}["forge"] == "fail"
    ending = texts["orderkit-support/logs/1-service.log"]
    assert ending.endswith("push with *** failed\n")
    assert len(ending) <= 1_000_000
    assert not any("s3cr3t" in text or "hunter2" in text for text in texts.values())


def test_a_file_that_cannot_be_written_leaves_nothing(folder: Path) -> None:
    done = as_process(folder / "platform.yaml")("support-bundle", str(folder / "no/x.tar.gz"))

    assert done.code == 1
    assert "support-bundle" in done.err or "no" in done.err
    assert not (folder / "no").exists()


def test_platform_yaml_loses_what_may_be_a_secret() -> None:
    text = """
spec:
  forge: {url: 'https://bob:hunter2@gitea.example.org/git', tokenFile: forge-token}
  notifications:
    channels:
      chat: {type: webhook, url: 'https://hooks.example.org/T0/B0/hunter2'}
  service: {url: 'https://orderkit.example.org/x', token: hunter2, audience: 'https://a.org/?k=hunter2'}
  values: {dbPassword: hunter2, sshKey: hunter2, keyFile: a.pem}
"""
    shown = redacted(text, name="platform.yaml")

    assert "hunter2" not in shown
    spec = yaml.safe_load(shown)["spec"]
    assert spec["forge"] == {"url": "https://gitea.example.org/***", "tokenFile": "forge-token"}
    assert spec["notifications"]["channels"]["chat"]["url"] == "https://hooks.example.org/***"
    assert spec["service"]["url"] == "https://orderkit.example.org/x"
    assert spec["values"]["keyFile"] == "a.pem"
