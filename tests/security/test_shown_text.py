"""Words of strangers in what people look at: terminals and Markdown show them and obey nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from markdown_it import MarkdownIt
from outcomes import Shop, an_xr, config, thing

from compositions.station import Station, StationRequest, StationResponse
from orderkit.cli.output import emit_json, emit_table
from orderkit.cli.views.plan_views import Screen, show
from orderkit.core.plan import Plan
from orderkit.flows.composing.planner import OrderPlanner
from orderkit.flows.plan.fleet_orders import ObjectLookup
from orderkit.flows.plan.pull_requests import JudgedPlan, comment_text

TEXTS = (
    "<img src=x onerror=alert(1)>",
    "</summary></details><b>x</b>",
    "\n\n[click](http://evil.example)\n\n",
    "\n\n# Plan: nothing changes\n\n",
    "`</code><b>x</b>",
    "<http://evil.example>",
    "@admin please",
    "\x1b[2J\x1b]0;title\x07",
    "\x9b31m",
    "\u202egnp.exe",
)
Use = Callable[[StationResponse, str, str], None]
PLACES: dict[str, Use] = {
    "a logical name": lambda r, text, size: r.want(text, config(size=size)),
    "a name": lambda r, text, size: r.want("map", config(text, size=size)),
    "a kind": lambda r, text, size: r.want("it", thing("v1", text, "it", spec={"size": size})),
    "a value": lambda r, text, size: r.want("map", config(text=text, size=size)),
    "a new resource": lambda r, text, size: r.want(f"map-{size}", config(f"map-{size}", text=text)),
    "a key": lambda r, text, size: r.want("map", config(**{text: size})),
    "a warning": lambda r, text, size: r.warning(f"{text} {size}"),
    "a refusal": lambda r, text, _: r.fatal(text),
}
_TAGS = {
    "p",
    "strong",
    "em",
    "code",
    "pre",
    "details",
    "summary",
    "ul",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def planned(use: Use, text: str) -> Plan:
    """Return the plan of a change of an order whose station brings the text somewhere."""

    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        use(response, text, str(request.xr["spec"]["size"]))
        return response

    asked: Station = station
    planner = OrderPlanner(ObjectLookup(()), Shop(asked).workshop)
    return planner.plan_step(an_xr({"size": 1}), an_xr({"size": 2}))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("use", PLACES.values(), ids=PLACES)
def test_a_plan_shows_the_text_and_obeys_nothing(
    use: Use, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(use, text)

    comment = comment_text(JudgedPlan(plan), "0" * 40)  # type: ignore[arg-type]
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(comment)
    assert _OBEYED.search(comment) is None
    assert set(re.findall(r"<(\w+)", html)) <= _TAGS
    assert "@admin" not in re.sub(r"<code.*?</code>", "", html, flags=re.DOTALL)
    for screen in (Screen(), Screen(full=True)):
        show("one", plan, None, screen)
    assert _OBEYED.search(capsys.readouterr().out) is None


def test_a_terminal_obeys_no_message_of_a_provider(capsys: pytest.CaptureFixture[str]) -> None:
    emit_table(("order", "reason"), [("garage-a", "\x1b[2J\x9b31m ok\r\u202eydaer")])
    emit_json("orderkit.test/v1", {"reason": "\x9b31m"})

    shown = capsys.readouterr().out
    assert _OBEYED.search(shown) is None
    assert r"\u001b[2J\u009b31m ok\u000d\u202eydaer" in shown
    assert json.loads(shown[shown.index("{") :])["reason"] == "\x9b31m"
