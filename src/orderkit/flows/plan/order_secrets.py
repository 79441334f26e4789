"""
The Secrets of a living order: those that it composes, and those that its stations require.

The flows that report an order's state mask their values in what the cluster says about it: a
station or provider may write a password into a condition or an event. Secrets that these
credentials may not read are not known.
"""

from __future__ import annotations

from dataclasses import replace

from ground.errors import OrderkitError
from ground.objects.kube_objects import Manifest, metadata
from orderkit.core.plan import assemble
from orderkit.core.secret_values import NO_SECRETS, SecretTexts, values_of
from orderkit.flows.plan.cluster_questions import observed_of
from orderkit.flows.plan.order_plan import AnsweredQuestions
from orderkit.flows.plan.published_pack import published_workshop
from orderkit.flows.platform import Platform


def order_secrets(platform: Platform, xr: Manifest) -> SecretTexts:
    """Return the values of an order's Secrets; none if the pack or the cluster cannot be read."""
    try:
        workshop = published_workshop(platform)
        observed = dict(
            observed_of(platform.cluster, xr, lambda part: workshop.blueprint(part) is not None)
        )
        questions = AnsweredQuestions(platform.cluster)
        if workshop.blueprint(xr) is not None:
            assemble(xr, replace(workshop, lookup=questions.look), observed=observed)
    except OrderkitError:
        return NO_SECRETS
    names = {str(metadata(manifest).get("name")) for manifest in (xr, *observed.values())}
    return SecretTexts(values_of([*observed.values(), *questions.objects]), public=names)
