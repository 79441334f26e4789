"""How a plan looks on a terminal: folds, widths, colours."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ground.objects.kube_objects import Manifest
from orderkit.cli.views.plan_views import Screen, show
from orderkit.core.plan import Assembly, Plan, compare
from orderkit.core.plan.plan_markdown import to_markdown


def config(name: str, **data: str) -> Manifest:
    meta = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def a_plan(before: dict[str, Manifest], after: dict[str, Manifest], **more: Any) -> Plan:
    xr: Manifest = {"apiVersion": "a.example/v1", "kind": "XShop", "metadata": {"name": "one"}}
    return compare(Assembly(xr, before, before), Assembly(xr, after, after, ready=True, **more))


def shown(capsys: pytest.CaptureFixture[str], plan: Plan, screen: Screen) -> str:
    show("shop-one", plan, None, screen)
    return capsys.readouterr().out


def test_equal_changes_of_many_resources_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    old = {f"p{n}": config(f"p{n}", tier="small") for n in range(6)}
    new = {f"p{n}": config(f"p{n}", tier="large") for n in range(6)}
    plan = a_plan(old, new)

    folded = shown(capsys, plan, Screen())
    unfolded = shown(capsys, plan, Screen(full=True))

    assert "~ 6 of kind ConfigMap" in folded
    assert "p0, p1, p2, p3, p4, p5" in folded
    assert folded.count("data.tier small → large") == 1
    assert unfolded.count("data.tier small → large") == 6


def test_different_changes_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    old = {f"p{n}": config(f"p{n}", tier="0") for n in range(6)}
    new = {f"p{n}": config(f"p{n}", tier=str(n + 1)) for n in range(6)}

    assert shown(capsys, a_plan(old, new), Screen()).count("~ ConfigMap shop/p") == 6


def test_many_fields_and_long_values_are_folded_and_can_be_unfolded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    old = {"p": config("p", **{f"k{n:02}": "a" * 300 for n in range(20)})}
    new = {"p": config("p", **{f"k{n:02}": "b" * 300 for n in range(20)})}
    plan = a_plan(old, new)

    folded = shown(capsys, plan, Screen())
    unfolded = shown(capsys, plan, Screen(full=True))

    assert "and 8 more fields (--full shows them)" in folded
    assert max(map(len, folded.splitlines())) < 200
    assert unfolded.count("b" * 300) == 20


@pytest.mark.parametrize("width", [40, 60, 100])
def test_lines_fit_the_terminal(capsys: pytest.CaptureFixture[str], width: int) -> None:
    old = {f"some-part-{n}": config(f"p{n}", tier="a word " * 30) for n in range(9)}
    new = {f"some-part-{n}": config(f"p{n}", tier="other words " * 30) for n in range(9)}
    plan = a_plan(old, new, unknowns=("something that is told at some length " * 4,))

    lines = shown(capsys, plan, Screen(width=width)).splitlines()

    assert max(map(len, lines)) <= width
    assert all(f"some-part-{n}" in "\n".join(lines) for n in range(9))


def test_long_values_are_cut_where_they_differ(capsys: pytest.CaptureFixture[str]) -> None:
    said = "You plan analyses of one dataset, and you are careful about it. " * 4
    old, new = (
        config("p", prompt=f"{said}It is housing."),
        config("p", prompt=f"{said}It is music."),
    )
    plan = a_plan({"p": old}, {"p": new})

    for screen in (Screen(), Screen(width=60)):
        text = shown(capsys, plan, screen)
        assert "housing" in text
        assert "music" in text
    assert "It is music" in to_markdown(plan)


def test_added_resources_are_shown_whole_if_everything_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = shown(capsys, a_plan({}, {"p": config("p", tier="small")}), Screen(full=True))

    assert "      kind: ConfigMap\n" in text
    assert "        tier: small\n" in text


def test_colour_is_on_terminals_unless_it_is_asked_for_or_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = a_plan({}, {"p": config("p")})

    def colours(choice: str) -> bool:
        return bool(re.search("\x1b\\[", shown(capsys, plan, Screen.of(color=choice))))

    assert [colours(choice) for choice in ("auto", "always", "never")] == [False, True, False]
    monkeypatch.setenv("NO_COLOR", "1")
    assert [colours(choice) for choice in ("auto", "always", "never")] == [False, True, False]
    assert Screen.of().color is False
