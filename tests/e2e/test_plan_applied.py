"""
What a plan foretells is what a real API server then holds: kits, orders and changes by chance.

Nothing of Argo CD, Gitea or a portal: XRs are applied to kube-apiserver, where our assembler and
the twins of the providers work through the Kubernetes adapter. The plan is made before, from
what the server holds; the outcome is read by Kubernetes' own client (``planproof``).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chances import Chances
from lab.realkube import Kube
from planproof.bugs import APPLIED, CHANGED
from planproof.grounds import Ground, real
from planproof.lives import wrongly_applied
from planproof.orders import orders
from planproof.proving import prove

KITS = {"garage": 2, "agentbudget": 1, "datasetagent": 1}
"""How many orders of each in a short run; 200 in a soak."""


@pytest.fixture(scope="module")
def ground(real_kube: Kube) -> Iterator[Ground]:
    with real(real_kube.kubeconfig) as found:
        yield found


def test_what_is_planned_is_what_the_api_server_then_holds(
    ground: Ground, chances: Chances
) -> None:
    assert set(KITS) == set(ground.kits), "every kit is proved"
    chosen = [
        order
        for kit, count in KITS.items()
        for order in orders(ground.kits[kit], chances.count(count, 200), chance=chances.seed)
    ]

    account = prove(ground, chosen)
    print(account)  # noqa: T201 - what was proved belongs into the log

    assert account.plans > len(chosen)
    assert not account.differences, str(account)


@pytest.mark.soak
def test_what_a_broken_runner_makes_of_it_differs(ground: Ground) -> None:
    bugs = APPLIED[:2]

    life = wrongly_applied(ground, "bug-three", bugs)

    for bug in bugs:
        assert life.shows(bug), [bug.name, *map(str, life.broken[bug])]
    assert not life.true[CHANGED], "without them it is as planned"
