"""
Where the embedded Argo CD differs from the real Argo CD, exactly.

An entry that no longer holds fails the suite, as does a difference that has no entry. What cannot
be seen in an event log (timing, how often something is written) stands in
``orderkit_standins.argocd`` and in docs/embedded-platform.md.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """In one step of one scenario, what is said of one subject."""

    scenario: str
    step: str
    subject: str
    real: str
    ours: str
    reason: str


_UNREADABLE = (
    "ComparisonError: Failed to load target state: failed to generate manifest for source 1 of 1: "
    'rpc error: code = FailedPrecondition desc = Failed to unmarshal "{file}": failed to unmarshal '
    "manifest: error converting YAML to JSON: yaml: line {line}: did not find expected key"
)
_LINE = "we number lines as editors do; the real one's parser counts from zero here"
_UNMAPPED = 'no matches for kind "Phantom" in version "<namespace>.example.org/v1"'
_UNMAPPED_REAL = (
    f'resource mapping not found for name: "g" namespace: "<namespace>" from "<file>": {_UNMAPPED} '
    "ensure CRDs are installed first"
)
_RETRIED = (
    "one or more synchronization tasks completed unsuccessfully, reason: {}."
    " Retrying attempt #n at <time>."
)
_FILE = "the real one applies from a file and says which; here no file is involved"


def _line(scenario: str, step: str, subject: str, file: str) -> Difference:
    real, ours = (_UNREADABLE.format(file=file, line=line) for line in (4, 5))
    return Difference(scenario, step, subject, real, ours, _LINE)


DIFFERENCES = (
    _line("bad_yaml", "a malformed file", "shop conditions", "a.yaml"),
    _line(
        "a_malformed_child_stops_its_root",
        "a bad file and a new child",
        "root conditions",
        "bad.yaml",
    ),
    _line(
        "a_malformed_child_stops_its_root", "the old child changes", "root conditions", "bad.yaml"
    ),
    Difference(
        "bad_yaml",
        "repaired",
        "shop history",
        "c1",
        "c1, c3",
        "the real one syncs no commit that changes nothing; we note each",
    ),
    Difference(
        "copied_tracking_annotations_do_not_count",
        "a commit",
        "shop resources",
        "ConfigMap/a Synced; ConfigMap/b Synced; ConfigMap/copy None",
        "ConfigMap/a Synced; ConfigMap/b Synced",
        "the real one lists an object with a copied annotation, without a status; we leave it out",
    ),
    Difference(
        "skip_dry_run_applies_the_rest",
        "begin",
        "shop message",
        _RETRIED.format(_UNMAPPED_REAL),
        _RETRIED.format(_UNMAPPED),
        _FILE,
    ),
    Difference(
        "skip_dry_run_applies_the_rest",
        "begin",
        "shop results",
        f"Phantom/g SyncFailed Failed: {_UNMAPPED_REAL}",
        f"Phantom/g SyncFailed Failed: {_UNMAPPED}",
        _FILE,
    ),
)
