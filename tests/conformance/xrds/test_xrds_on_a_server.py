"""The real API server takes the CRDs of sound XRDs, and refuses those whose problems we tell."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from lab.realkube import Kube
from tests.conformance.validate.judges import Server
from tests.conformance.xrds.recording import RECORDED, definitions, recorded

from kubeschema.xrd import problems

DEFINITIONS, ANSWERS = definitions(), recorded()
MADE = sorted(name for name, answer in ANSWERS.items() if "crd" in answer)
DIFFERENCES = {
    "odd/numbers in other spellings": "a whole number is not a multiple of 0.25 to the server, "
    "which rounds 0.25 to 0",
}


def _refusal(server: Server, crd: dict[str, Any]) -> str:
    """Offer a CRD in a group of its own: other tests leave theirs on the server."""
    meta = {key: value for key, value in crd["metadata"].items() if key != "ownerReferences"}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    group = crd["spec"]["group"]
    if meta["name"].endswith(f".{group}"):
        meta["name"] = f"{meta['name'].removesuffix(group)}offered.{group}"
    spec = {**crd["spec"], "group": f"offered.{group}"}
    return server.definition_refusal({**crd, **kind, "metadata": meta, "spec": spec})


@pytest.mark.parametrize("name", MADE)
def test_problems_are_told_where_the_server_refused(name: str) -> None:
    told = problems(DEFINITIONS[name])

    expected = bool(ANSWERS[name]["refusal"]) and name not in DIFFERENCES
    assert bool(told) == expected, ANSWERS[name]["refusal"] or told


def test_the_corpus_is_sound() -> None:
    refused = {n: ANSWERS[n]["refusal"] for n in MADE if n.startswith("corpus/")}

    assert not any(refused.values()), refused


def test_a_server_still_answers_as_recorded(real_kube: Kube) -> None:
    server = Server(real_kube.kubeconfig)
    said = {name: _refusal(server, ANSWERS[name]["crd"]) for name in MADE}
    server.close()

    if os.environ.get("ORDERKIT_RECORD_VERDICTS"):
        whole = json.loads(RECORDED.read_text())
        for name, refusal in said.items():
            whole["answers"][name]["refusal"] = refusal
        text = json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False)
        RECORDED.write_text(f"{text}\n")
    else:
        refused = {name: bool(refusal) for name, refusal in said.items()}  # order of words varies
        assert refused == {name: bool(ANSWERS[name]["refusal"]) for name in MADE}
