"""
The XRDs whose CRDs are compared with Crossplane's, and what Crossplane made of them.

``recorded.json`` was made by Crossplane 2.3.4's own derivation (crossplane-runtime v2.3.3,
``ForCompositeResource`` and ``ForCompositeResourceClaim``), called in a small Go program outside
this repository. Each XRD was pruned and defaulted first by the schema of Crossplane's own CRD of
XRDs, as the API server does, then read in the storage version v1. To record again after a
change, give such a program the lines of

    PYTHONPATH=tests/support python -m tests.conformance.xrds.recording

(JSON: name, xrd) and write what it answers (name, crd, error, claim, claimError) into
``recorded.json`` with

    PYTHONPATH=tests/support python -m tests.conformance.xrds.recording ANSWERS VERSION

Two printer columns of ``reference/garage`` (BAY, ASSEMBLED) were added to its answer by hand:
Crossplane copies columns as they are, before its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from corpuspack import definition, kit_names

from ground.objects.kube_objects import Manifest

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.json"


def definitions() -> dict[str, Manifest]:
    """Return the corpus, the reference pack's XRDs and the odd ones, by name."""
    found = {f"corpus/{kit}": definition(kit) for kit in kit_names()}
    for path in sorted(Path("gitops/apis").glob("*/definition.yaml")):
        found[f"reference/{path.parent.name}"] = yaml.safe_load(path.read_bytes())
    for document in yaml.safe_load_all((HERE / "odd.yaml").read_bytes()):
        found[f"odd/{document['metadata'].pop('annotations')['case']}"] = document
    return found


def recorded() -> dict[str, Any]:
    """Return Crossplane's answers by name."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())["answers"]
    return found


def _questions() -> Iterator[str]:
    for name, xrd in definitions().items():
        yield json.dumps({"name": name, "xrd": xrd}, sort_keys=True)


def _take(answers: Path, version: str) -> None:
    before = recorded() if RECORDED.exists() else {}
    found = {}
    for line in answers.read_text().splitlines():
        answer = json.loads(line)
        for part in ("crd", "claim"):
            if part in answer:  # what Go writes although nobody set it
                answer[part].pop("status", None)
                answer[part]["metadata"].pop("creationTimestamp", None)
        name = answer.pop("name")
        if "crd" in answer:
            answer["refusal"] = before.get(name, {}).get("refusal", "")
        found[name] = answer
    told = {"crossplane": version, "answers": found}
    RECORDED.write_text(json.dumps(told, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if sys.argv[1:]:
        _take(Path(sys.argv[1]), sys.argv[2])
    else:
        sys.stdout.writelines(f"{line}\n" for line in _questions())
