"""
What a living order costs a month: its XR, composed by the published pack, at the pack's prices.

The same for rows, views, limits and, at each commit, for statements: what a plan of the order would
say. The cluster is asked only for what stations require, and never for a Secret: no sentence about
a cost can show the value of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from compositions.generated_passwords import SEED_SELECTOR
from compositions.station import Selector
from ground.errors import InvalidInputError, NotFoundError
from ground.objects.kube_objects import Manifest, annotations_of, labels_of, metadata
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.plan import AssemblyContext, assemble
from orderkit.core.plan.cost import order_cost
from orderkit.core.plan.price_table import PriceTable
from orderkit.core.secret_values import SECRET
from orderkit.flows.composing.cluster_questions import AnsweredQuestions, Lookup
from orderkit.flows.composing.published_pack import published_workshop
from orderkit.flows.platform import Platform, published_prices

_CROSSPLANES_OWN = ("resourceRefs", "compositionRevisionRef", "claimRef")


def cost_of(platform: Platform, xr: Manifest) -> OrderCost | None:
    """
    Return what an order costs, from its XR in Git or in the cluster; None without prices.

    A table or a pack that cannot be read is an unknown cost, not an error.

    Raises:
        RemoteError: The forge or the cluster.
    """
    try:
        table = published_prices(platform)
        if table is None:
            return None
        return composed_cost(xr, published_workshop(platform), table, platform.cluster)
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
