"""SARIF logs hold what SARIF 2.1.0 demands."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from jsonschema import Draft7Validator

from kubeschema.validate import Reason
from kubeschema.validate.findings import NOT_EVALUATED, SarifResult, sarif

ESSENTIALS: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"enum": ["2.1.0"]},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "properties": {
                                                "shortDescription": {"required": ["text"]}
                                            },
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "message": {"required": ["text"]},
                                "locations": {
                                    "items": {
                                        "properties": {
                                            "physicalLocation": {
                                                "required": ["artifactLocation"],
                                                "properties": {
                                                    "region": {
                                                        "properties": {
                                                            "startLine": {"minimum": 1},
                                                            "startColumn": {"minimum": 1},
                                                        }
                                                    }
                                                },
                                            }
                                        }
                                    }
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}
"""What the standard's schema demands of the parts that we write."""


def test_a_log_is_valid_and_its_rule_numbers_lead_to_its_rules() -> None:
    file = PurePosixPath("orders/a b.yaml")
    log = sarif(
        [
            SarifResult(Reason.UNKNOWN_FIELD.value, "error", "spec.x: unknown", file, 3, 5),
            SarifResult(NOT_EVALUATED, "note", "spec: not evaluated", file),
        ],
        version="1",
    )

    Draft7Validator(ESSENTIALS).validate(log)
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[r["ruleIndex"]]["id"] for r in run["results"]] == ["unknown-field", NOT_EVALUATED]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "orders/a%20b.yaml"
    assert place["region"] == {"startLine": 3, "startColumn": 5}


def test_every_reason_is_described() -> None:
    rules = sarif([], version="1")["runs"][0]["tool"]["driver"]["rules"]

    assert {rule["id"] for rule in rules} == {*(r.value for r in Reason), NOT_EVALUATED}
