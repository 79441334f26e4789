"""
Validating 1,000 XRs: with and without CEL rules, against the jsonschema library alone.

The peer judges the same ``spec`` by the same schema in its own dialect (no defaults, no unknown
fields, no rules, no metadata): less than what `kubeschema.validate` does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft4Validator

from bench.figure import Figure, median_s, size
from kubeschema.validate import Validator

XRS, RUNS = size((1_000, 7), (10, 1))
RULES = [
    {"rule": "self.size != 'large' || self.replicas >= 3", "message": "large needs three"},
    {"rule": "!has(self.domain) || self.domain.endsWith('.example.org')"},
    {"rule": "self.ports.all(p, p.number > 1024)"},
    {"rule": "!has(oldSelf.team) || self.team == oldSelf.team"},
]
SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["team", "size"],
    "properties": {
        "team": {"type": "string", "pattern": "^[a-z][a-z0-9-]{2,28}$"},
        "size": {"type": "string", "enum": ["small", "medium", "large"]},
        "replicas": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
        "domain": {"type": "string", "maxLength": 60},
        "public": {"type": "boolean", "default": False},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "ports": {
            "type": "array",
            "maxItems": 8,
            "items": {
                "type": "object",
                "required": ["name", "number"],
                "properties": {
                    "name": {"type": "string", "maxLength": 15},
                    "number": {"type": "integer", "minimum": 1, "maximum": 65535},
                },
            },
        },
    },
}


def figures() -> Iterator[Figure]:
    xrs = [_xr(number) for number in range(XRS)]
    plain, ruled = (
        Validator(_xrd(SPEC)),
        Validator(_xrd({**SPEC, "x-kubernetes-validations": RULES})),
    )
    peer = Draft4Validator(SPEC)
    peer_s = median_s(lambda: [list(peer.iter_errors(xr["spec"])) for xr in xrs], runs=RUNS)
    first_s = median_s(
        lambda: Validator(_xrd({**SPEC, "x-kubernetes-validations": RULES})).faults(), runs=3
    )
    for name, validator, aim in (("structure", plain, ">= 5000"), ("with-rules", ruled, ">= 1000")):
        assert all(validator.check(xr).valid for xr in xrs)
        ours_s = median_s(lambda v=validator: [v.check(xr) for xr in xrs], runs=RUNS)  # type: ignore[misc]  # mypy infers no lambda with a default
        yield Figure(
            f"validate.{name}",
            XRS / ours_s,
            "per second",
            peer="jsonschema alone: no defaults, unknown fields, rules, names",
            peer_value=XRS / peer_s,
            ratio=peer_s / ours_s,
            aim=aim,
        )
    changed_s = median_s(lambda: [ruled.check(xr, xr) for xr in xrs], runs=RUNS)
    yield Figure("validate.change", XRS / changed_s, "per second", aim=">= 1000")
    yield Figure("validate.compile-rules", first_s * 1000, "ms")


def _xr(number: int) -> dict[str, Any]:
    spec = {
        "team": f"team-{number}",
        "size": "medium",
        "domain": f"a{number}.example.org",
        "labels": {"a": "b", "c": "d"},
        "ports": [{"name": "web", "number": 8080}, {"name": "admin", "number": 9090}],
    }
    return {
        "apiVersion": "example.org/v1",
        "kind": "XThing",
        "metadata": {"name": f"thing-{number}"},
        "spec": spec,
    }


def _xrd(spec: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": json.loads(json.dumps(spec))}}
    version = {"name": "v1", "served": True, "referenceable": True}
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xthings.example.org"},
        "spec": {
            "scope": "Cluster",
            "group": "example.org",
            "names": {"kind": "XThing", "plural": "xthings"},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }
