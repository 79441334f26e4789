"""
Updates that are refused although the new object is valid: what is set once, and what is replaced.

An API server refuses other values of some fields of Kubernetes' own kinds
(``kubeschema.known.immutable_fields``). A provider never replaces a resource, so it refuses a value
that only another resource could have (``replaces`` of behaviour.yaml).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from compositions.managed_state import reference_forms, replacements
from ground.objects.kube_objects import Manifest, dig, only_observes
from ground.objects.values import ABSENT
from kubeschema.known import refused_updates
from kubeschema.known.behaviours import Behaviours, behaviour_of
from orderkit.core.plan.assembly import Assembly, Fault
from orderkit.core.plan.judging.fault_codes import JudgingFacts, OutcomeRule
from orderkit.core.plan.object_texts import key_text
from orderkit.core.plan.outcome_objects import OutcomeObject, Pair, pairs_of
from orderkit.core.secret_values import is_secret

_HINT = "put the old value back: only a new object can have another, under another name"


def judge_updates(before: Assembly, after: Assembly, facts: JudgingFacts) -> Iterator[Fault]:
    """Yield the updates of existing objects that the API server or the provider refuses."""
    for pair in pairs_of(before, after):
        exists = facts.existing_paths is None or pair.path in facts.existing_paths
        if exists and not only_observes(after.resources[pair.path]):
            yield from _set_once(pair, before, after)
            yield from _replaced(pair, facts.behaviours)


def _set_once(pair: Pair, before: Assembly, after: Assembly) -> Iterator[Fault]:
    is_wrapped = pair.new is not after.resources[pair.path]
    prefix = "spec.forProvider.manifest" if is_wrapped else ""
    place = OutcomeObject(pair.path, pair.new, prefix)
    live = {} if is_wrapped else before.observed.get(pair.path, {})
    old = {**_stored(pair.old), "status": live.get("status") or {}}
    for refused in refused_updates(old, _stored(pair.new)):
        field = refused.field or refused.path
        yield Fault(
            pair.path,
            f"{key_text(pair.new)}: {field} cannot change once it is set: {refused.rule}",
            place.field(field),
            _HINT,
            code=OutcomeRule.IMMUTABLE,
            rule=refused.rule,
        )


def _stored(manifest: Manifest) -> Manifest:
    """Return an object as the server stores it: texts of a Secret are encoded."""
    if not is_secret(manifest) or not isinstance(manifest.get("stringData"), dict):
        return manifest
    texts = {
        k: base64.b64encode(str(v).encode()).decode() for k, v in manifest["stringData"].items()
    }
    return {**manifest, "data": {**(manifest.get("data") or {}), **texts}}


def _replaced(pair: Pair, behaviours: Behaviours) -> Iterator[Fault]:
    declared = behaviour_of(behaviours, pair.kind.group, pair.kind.kind).replaces
    if not declared:
        return
    old, new = (dig(m, "spec", "forProvider", default=None) or {} for m in (pair.old, pair.new))
    forms = [form for path in declared for form in reference_forms(path)]
    changed = [path for path, *_ in replacements(declared, old, new)]
    changed += [path for path, was, _ in replacements(forms, old, new) if was is not ABSENT]
    for path in changed:
        yield Fault(
            pair.path,
            f"{key_text(pair.new)}: another value of spec.forProvider.{path} needs another "
            "resource, and a provider never replaces one: this one would stay as it is, unsynced, "
            "until somebody deletes it or puts the old value back",
            f"spec.forProvider.{path}",
            _HINT,
            code=OutcomeRule.REPLACES,
            rule="replaces",
        )
