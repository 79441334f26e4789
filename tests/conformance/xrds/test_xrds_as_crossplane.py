"""The CRDs of every XRD are those that Crossplane made, to the last field."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.xrds.recording import definitions, recorded

from ground.objects.kube_objects import Manifest
from kubeschema.xrd import BrokenXrdError, claim_crd_for, crd_for

DEFINITIONS = definitions()
RECORDED = recorded()


def _ours(xrd: Manifest) -> dict[str, Any]:
    """Answer as the recorded program did. Its words for what it cannot read are Go's: not ours."""
    found: dict[str, Any] = {}
    try:
        found["crd"] = crd_for(xrd)
    except BrokenXrdError as error:
        found["error"] = str(error)
    try:
        claim = claim_crd_for(xrd)
    except BrokenXrdError as error:
        found["claimError"] = str(error)
    else:
        found |= {"claim": claim} if claim else {}
    return found


def _comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """Of an error of reading only its beginning is compared; kind and apiVersion are ours."""
    found = {key: value for key, value in answer.items() if key != "refusal"}
    for part in ("error", "claimError"):
        if "cannot parse validation schema" in found.get(part, ""):
            found[part] = found[part].partition("cannot parse validation schema")[0]
    for part in ("crd", "claim"):
        if part in found:
            found[part] = {k: v for k, v in found[part].items() if k not in {"apiVersion", "kind"}}
    return found


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_crds_are_those_of_crossplane(name: str) -> None:
    assert _comparable(_ours(DEFINITIONS[name])) == _comparable(RECORDED[name])


def test_every_xrd_was_recorded() -> None:
    assert set(RECORDED) == set(DEFINITIONS)
