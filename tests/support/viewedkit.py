"""The reference pack's garage with more outputs than it has, and a Secret for one of them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

from ground.objects.kube_objects import CONFIG_MAP, ObjectKey
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.serve_platform import Running

PASSWORD = "correct-horse-battery"
KIT = PurePosixPath("templates/garage/kit.yaml")
OUTPUTS = """\
  outputs:
    - {name: bay, title: Bay, path: namespace}
    - {name: password, secret: {name: login, namespace: 'garage-{spec.teamName}', key: password}}
    - {name: stage, path: stage, secret: true}
"""


@contextmanager
def declared_outputs(platform: Running, others: str = "") -> Iterator[None]:
    """Publish a kit.yaml that declares outputs, and `others`; bring the old one back afterwards."""
    forge, repo = platform.platform.forge, platform.platform.pack_repo
    before = forge.read(repo, KIT, "main")
    assert before is not None
    start, _, rest = before.text.partition("  outputs:\n")
    text = start + others + OUTPUTS + rest[rest.index("  facts:") :]

    def write(data: bytes, sha: Any, name: str) -> None:
        operation = Operation(name, "user:default/test", name)
        forge.write(repo, [FileChange(KIT, data, sha)], operation)

    write(text.encode(), before.sha, "declare-outputs")
    yield
    now = forge.read(repo, KIT, "main")
    assert now is not None
    write(before.data, now.sha, "restore-kit")


def put_secret(
    platform: Running, team: str, *, owned: bool, uid: str = "", value: bytes = PASSWORD.encode()
) -> None:
    """
    Make the Secret of the output ``password``; `owned`: by a part of the order.

    Args:
        uid: That of another owner of the part's kind and name, who is gone: a finalizer keeps the
            Secret from the garbage collector.
        value: Of its key ``password``.
    """
    namespace = f"garage-{team}"
    part = platform.platform.cluster.get(ObjectKey(CONFIG_MAP, "spec-sheet", namespace))
    assert part is not None
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "spec-sheet",
        "uid": uid or part["metadata"]["uid"],
        "controller": True,
    }
    platform.platform.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "login",
                "namespace": namespace,
                "ownerReferences": [owner] if owned else [],
                "finalizers": ["orderkit.dev/test"] if uid else [],
            },
            "data": {"password": base64.b64encode(value).decode()},
        },
        owner="test",
    )
