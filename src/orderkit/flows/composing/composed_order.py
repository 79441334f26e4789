"""
What a living order costs, and which Secrets it has: composed by the published pack.

`cost_of` says what an order costs a month: its XR, composed by the published pack, at the pack's
prices. The same for rows, views, limits and, at each commit, for statements: what a plan of the
order would say. The cluster is asked only for what stations require, and never for a Secret: no
sentence about a cost can show the value of one.

`order_secrets` has the Secrets that an order composes, and those that its stations require. The
flows that report an order's state mask their values in what the cluster says about it: a station or
provider may write a password into a condition or an event. A text that the stations made of a value
that is easy to guess, or in which no value can be found, is masked as a whole wherever it stands.
So is a live text with such a value that the stations would not write now. If the stations refuse
other values, nobody knows what they made: then values that are easy to guess are masked as whole
words. Secrets that these credentials may not read are not known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from compositions.resource_builders import SEED_SELECTOR
from compositions.station import Selector
from ground.errors import InvalidInputError, NotFoundError, OrderkitError
from ground.names import CommitSha
from ground.objects.kube_objects import Manifest, annotations_of, labels_of, metadata
from ground.objects.values import value_at
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.plan import Assembly, AssemblyContext, assemble, with_secret_traces
from orderkit.core.plan.assembly import SecretField
from orderkit.core.plan.cost import order_cost
from orderkit.core.plan.price_table import PriceTable
from orderkit.core.plan.secret_traces import secret_fields
from orderkit.core.secret_values import (
    NO_SECRETS,
    SECRET,
    SecretTexts,
    entries_of,
    has_random_word,
    leaves,
    names_public,
    values_of,
)
from orderkit.flows.composing.cluster_questions import AnsweredQuestions, Lookup, observed_of
from orderkit.flows.composing.published_pack import published_workshop
from orderkit.flows.platform import Platform, published_prices

_CROSSPLANES_OWN = ("resourceRefs", "compositionRevisionRef", "claimRef")


def cost_of(platform: Platform, xr: Manifest, pack: CommitSha | None = None) -> OrderCost | None:
    """
    Return what an order costs, from its XR in Git or in the cluster; None without prices.

    A table or a pack that cannot be read is an unknown cost, not an error.

    Args:
        pack: The pack's commit; None: the head.

    Raises:
        RemoteError: The forge or the cluster.
    """
    try:
        pack = pack or platform.forge.head(platform.pack_repo)
        table = published_prices(platform, pack)
        if table is None:
            return None
        return composed_cost(xr, published_workshop(platform, pack), table, platform.cluster)
    except (InvalidInputError, NotFoundError) as error:
        return OrderCost("", None, unknown=(f"costs are not known: {error}",))


def composed_cost(
    xr: Manifest, workshop: AssemblyContext, table: PriceTable, cluster: Lookup | None
) -> OrderCost:
    """
    Return what an XR costs as a pack composes it.

    Args:
        xr: From Git or from the cluster.
        workshop: The pack.
        table: What things cost.
        cluster: Where stations' requirements are looked up; None: only in the pack's settings.

    Raises:
        RemoteError: The cluster.
    """
    xr = as_written(xr)
    if workshop.blueprint(xr) is None:
        return OrderCost(table.currency, None, unknown=("the pack has no Composition for it",))
    questions = _WithoutSecrets(AnsweredQuestions(cluster))
    settings = workshop.laws.settings if cluster is None else ()
    existing = (*workshop.existing, *settings)
    assembly = assemble(xr, replace(workshop, existing=existing, lookup=questions.look))
    questions.questions.check()
    return order_cost(assembly, table)


def as_written(xr: Manifest) -> Manifest:
    """Return an XR without what the cluster adds to it."""
    spec: Mapping[str, Any] = xr.get("spec") or {}
    kept = {name: value for name, value in spec.items() if name not in _CROSSPLANES_OWN}
    if isinstance(crossplane := kept.get("crossplane"), dict):
        kept["crossplane"] = {k: v for k, v in crossplane.items() if k not in _CROSSPLANES_OWN}
    meta = {name: value for name in ("name", "namespace") if (value := metadata(xr).get(name))}
    meta["labels"], meta["annotations"] = dict(labels_of(xr)), dict(annotations_of(xr))
    return {"apiVersion": xr["apiVersion"], "kind": xr["kind"], "metadata": meta, "spec": kept}


@dataclass(frozen=True, slots=True)
class _WithoutSecrets:
    """Looks up what stations require, except Secrets; the seed of passwords has a stand-in."""

    questions: AnsweredQuestions

    def look(self, selector: Selector) -> list[Manifest]:
        is_secret = (selector.api_version, selector.kind) == (SECRET.api_version, SECRET.kind)
        if is_secret and selector != SEED_SELECTOR:
            return []
        return self.questions.look(selector)


def order_secrets(platform: Platform, xr: Manifest, pack: CommitSha | None = None) -> SecretTexts:
    """Return the values of an order's Secrets; none if the pack or the cluster cannot be read."""
    try:
        workshop = published_workshop(platform, pack)
        observed = dict(
            observed_of(platform.cluster, xr, lambda part: workshop.blueprint(part) is not None)
        )
        questions = AnsweredQuestions(platform.cluster)
        workshop = replace(workshop, lookup=questions.look)
        assembly = None
        if workshop.blueprint(xr) is not None:
            assembly = assemble(xr, workshop, observed=observed)
    except OrderkitError:
        return NO_SECRETS
    objects = [*observed.values(), *questions.objects]
    names = {str(metadata(manifest).get("name")) for manifest in (xr, *observed.values())}
    public = workshop.laws.public_keys_of(xr)
    values = frozenset(values_of(objects, public=public))
    plain = public | _plain_keys(objects)
    words = {text for key, text in entries_of(objects) if key not in plain}
    if assembly is None or not words:
        return SecretTexts(values, public=names)
    names |= set(leaves(xr.get("spec")))
    assembly = with_secret_traces(assembly, xr, workshop, observed, public=plain)
    copies = _copies(
        assembly,
        {**observed, "": xr},
        SecretTexts(values, public=names),
        SecretTexts((), public=names, words=words),
    )
    is_known = assembly.secret_traces.complete
    return SecretTexts({*values, *copies}, public=names, words=() if is_known else words)


def _copies(
    assembly: Assembly, live: Mapping[str, Manifest], texts: SecretTexts, easy: SecretTexts
) -> Iterator[str]:
    """
    Yield texts that are masked as a whole.

    Args:
        texts, easy: The values that texts are searched for, and all values as words.
    """
    traces = assembly.secret_traces
    traced = {*traces.texts, *_texts_at(traces.fields, assembly, live)}
    yield from (text for text in traced if texts.redact(text) == text)
    unsure = secret_fields(assembly, live)
    if assembly.stuck:  # the status is what the stations wrote before they failed
        unsure |= {("", ("status",))}
    for text in traced | set(_texts_at(unsure, assembly, live)):
        if easy.in_text(texts.redact(text)):
            yield text


def _plain_keys(objects: Collection[Manifest]) -> frozenset[str]:
    """Return the keys of Secrets that name something public and have such values everywhere."""
    entries = list(entries_of(objects))
    random = {key for key, text in entries if has_random_word(text)}
    return frozenset(key for key, _ in entries if names_public(key)) - random


def _texts_at(
    fields: Collection[SecretField], assembly: Assembly, live: Mapping[str, Manifest]
) -> Iterator[str]:
    """Yield the texts of fields, as computed and as they live."""
    for path, steps in fields:
        computed = assembly.observed.get(path, {}) if path else assembly.xr
        for manifest in (computed, live.get(path, {})) if steps else ():
            yield from leaves(value_at(manifest, steps))
