"""
Changing one field of a manifest of 33, 306 and 3,001 lines, against what else could do it.

The peers in the same run: ruamel's round trip (no proof, and it writes the whole file anew),
yaml-edit (a lossless tree in Rust, no proof) and sed in a process of its own (no parser at all).
Each figure counts the lines that the tool changed besides the one that was meant.
"""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable, Iterator

from bench.figure import Figure, median_s
from orderkit.core.yamledit import Edit, edit

SIZES = {3: 0.3, 42: 4.0, 427: 45.0}
"""Blocks of a manifest, and the aim in milliseconds."""
RUNS = 9
HEAD = """\
# What the team ordered; every change comes through Git.
apiVersion: example.org/v1alpha1
kind: XGarage
metadata:
  name: order
  labels: {app.kubernetes.io/managed-by: argocd, team: "ae86"}
spec:
  stage: stage2   # stage1 to stage3
  budget: 1500
  parts:
"""
BLOCK = """\
    - name: part-{0}
      enabled: true
      image: "registry.example.org/part:1.{0}.0"
      replicas: {0}
      hosts:
        - part-{0}.example.org   # public
        - 'part-{0}.internal'
"""
TAIL = "  owner: platform\n  note: 'see the wiki'\n"


def figures() -> Iterator[Figure]:
    for blocks, aim_ms in SIZES.items():
        text = HEAD + "".join(BLOCK.format(at) for at in range(blocks)) + TAIL
        lines = text.count("\n")
        wanted = text.replace("stage: stage2", "stage: stage3")
        ours_s, extra = _measure(_ours, text, wanted)
        assert not extra
        for name, peer in PEERS.items():
            peer_s, extra = _measure(peer, text, wanted)
            yield Figure(
                f"edit.{lines}-lines.{name}",
                ours_s * 1000,
                "ms",
                peer=f"{name}, {extra} other lines changed",
                peer_value=peer_s * 1000,
                ratio=peer_s / ours_s,
                aim=f"<= {aim_ms}",
            )


def _measure(tool: Callable[[str], str], text: str, wanted: str) -> tuple[float, int]:
    found = tool(text)
    other = set(found.splitlines()) ^ set(wanted.splitlines())
    runs = RUNS if len(text) < 50_000 else 3  # noqa: PLR2004 - ruamel takes a second there
    return median_s(lambda: tool(text), runs=runs), len(other)


def _ours(text: str) -> str:
    return edit(text.encode(), [Edit(("spec", "stage"), value="stage3")]).decode()


def _ruamel(text: str) -> str:
    import ruamel.yaml

    yaml = ruamel.yaml.YAML()
    data = yaml.load(text)
    data["spec"]["stage"] = "stage3"
    out = io.StringIO()
    yaml.dump(data, out)
    return out.getvalue()


def _yaml_edit(text: str) -> str:
    from yaml_edit import Document

    document = Document.parse(text)
    spec = document["spec"].as_mapping()
    assert spec is not None
    spec["stage"] = "stage3"
    return str(document)


def _sed(text: str) -> str:
    done = subprocess.run(
        ["sed", "-E", r"s/^(  stage: )[^ ]*/\1stage3/"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


PEERS = {"ruamel": _ruamel, "yaml-edit": _yaml_edit, "sed": _sed}
