"""An Application's spec: defaults of Argo CD, refusals instead of silence."""

from __future__ import annotations

from typing import Any

import pytest

from orderkit_standins.argocd.spec import InvalidSpecError, read_retry, read_spec

URL = "http://127.0.0.1:7300/ae86/garage.git"


def app(**changes: Any) -> dict[str, Any]:
    """A minimal Application; `changes` replace parts of its spec."""
    spec: dict[str, Any] = {
        "source": {"repoURL": URL, "path": "manifests"},
        "destination": {"server": "https://kubernetes.default.svc"},
    }
    return {"spec": {**spec, **changes}}


def test_what_is_left_out_has_argo_cds_defaults() -> None:
    spec = read_spec(app())

    assert (spec.project, spec.source.revision, spec.source.recurse) == ("default", "HEAD", False)
    assert spec.automated is None
    assert spec.history_limit == 10


def test_automation_can_be_written_and_switched_off() -> None:
    policy = {"automated": {"enabled": False, "prune": True}}

    assert read_spec(app(syncPolicy=policy)).automated is None
    assert read_spec(app(syncPolicy={"automated": {}})).automated is not None


@pytest.mark.parametrize(
    ("reason", "changes", "text"),
    [
        ("no path", {"source": {"repoURL": URL}}, "spec.source.path"),
        ("Helm", {"source": {"repoURL": URL, "chart": "x"}}, "spec.source.chart is not supported"),
        (
            "Jsonnet",
            {"source": {"repoURL": URL, "path": "a", "directory": {"jsonnet": {"libs": ["b"]}}}},
            "directory.jsonnet is not supported",
        ),
        ("several sources", {"sources": [{}]}, "several sources"),
        ("no cluster", {"destination": {"namespace": "a"}}, "Destination server missing"),
        ("another cluster", {"destination": {"name": "prod"}}, "no clusters with this name: prod"),
        ("another server", {"destination": {"server": "https://a.example"}}, "a.example"),
        (
            "two clusters",
            {"destination": {"server": "https://a.example", "name": "in-cluster"}},
            "both name and server",
        ),
    ],
)
def test_refused(reason: str, changes: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidSpecError, match=text):
        read_spec(app(**changes))
    assert reason


def test_the_sequence_of_retry_delays_doubles_up_to_the_longest() -> None:
    retry = read_retry({"limit": 5, "backoff": {"duration": "500ms", "maxDuration": "1m30s"}})

    assert [retry.delay_s(n) for n in range(1, 5)] == [0.5, 1.0, 2.0, 4.0]
    assert retry.delay_s(1000) == 90.0
    assert [read_retry(None).delay_s(n) for n in (1, 2, 20)] == [5.0, 10.0, 180.0]


@pytest.mark.parametrize("text", ["soon", "5", "-1s", "1d", "1s1"])
def test_durations_are_go_durations(text: str) -> None:
    retry = {"backoff": {"duration": text}}
    if text.isdigit():
        assert read_retry(retry).duration_s == 5.0
    else:
        with pytest.raises(InvalidSpecError, match="is not a duration"):
            read_retry(retry)
