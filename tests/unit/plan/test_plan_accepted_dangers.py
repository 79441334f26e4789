"""What a kit accepts once, with a reason, is listed apart and is no danger any more."""

from __future__ import annotations

from typing import Any

import pytest
from outcomes import GROUP, Shop, an_xr, thing, wanting

from orderkit.core.kit.kit_file import ACCEPTABLE, AcceptedDanger
from orderkit.core.plan import Code, Plan
from orderkit.core.plan.composed_tree import PackRules
from orderkit.core.plan.plan_json import plan_document
from orderkit.core.plan.plan_markdown import to_markdown
from orderkit.flows.composing.planner import OrderPlanner
from orderkit.flows.plan.fleet_orders import ObjectLookup

WORLD = "0.0.0.0/0"
REASON = "the load balancer of a public shop"


def firewall(*sources: str) -> Any:
    rules = [{"cidrBlocks": [source]} for source in sources]
    return thing("ec2.aws.upbound.io/v1beta1", "SecurityGroup", "fw", spec={"ingress": rules})


def planned(*accepts: AcceptedDanger, part: str = "firewall") -> Plan:
    laws = PackRules(accepts={(GROUP, "XShop"): accepts})
    shop = Shop(wanting({part: firewall(WORLD)}), laws=laws)
    return OrderPlanner(ObjectLookup([]), shop.workshop).plan_new(an_xr({}))


def opened(plan: Plan) -> list[str]:
    return [danger.message for danger in plan.dangers if danger.code is Code.ACCESS]


@pytest.mark.parametrize("part", ["firewall", "fire*"])
def test_an_accepted_danger_is_listed_apart(part: str) -> None:
    plan = planned(AcceptedDanger("access-widened", part, REASON, words=WORLD))

    assert opened(plan) == []
    [accepted] = plan.accepted
    assert (accepted.danger.path, accepted.reason) == ("firewall", REASON)
    assert "Accepted by the kit:\n\n- `firewall`" in to_markdown(plan)
    assert plan_document(plan).to_json()["plan"]["accepted"][0]["reason"] == REASON
    assert "danger" not in plan.summary


@pytest.mark.parametrize(
    "rule",
    [
        AcceptedDanger("access-widened", "gate", REASON),
        AcceptedDanger("access-widened", "firewall", REASON, words="10.0.0.0/8"),
        AcceptedDanger("stops", "firewall", REASON),
    ],
    ids=["another part", "other words", "another danger"],
)
def test_every_other_danger_stays_one(rule: AcceptedDanger) -> None:
    plan = planned(rule)

    assert len(opened(plan)) == 1
    assert plan.accepted == ()


def test_a_kit_cannot_accept_what_loses_data_or_exposes_secrets() -> None:
    never = {Code.DATA_LOSS, Code.EXPOSED, Code.IMMUTABLE, Code.REPLACES, Code.TAKES_OVER}

    assert set(ACCEPTABLE) <= {code.value for code in Code} - {code.value for code in never}
