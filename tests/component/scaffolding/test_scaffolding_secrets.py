"""A task's secrets work in inputs and are seen nowhere."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from templates import log, step, template

from ground import secrets as registry
from ground.errors import InvalidInputError, OrderkitError, RefusedError, shorten
from orderkit.flows.template.scaffolder import Environment
from orderkit.flows.template.scaffolder.task_check import Masker

TOKEN = "can4ry/+ \"value'"
SECRETS = {"token": TOKEN}
REQUEST = {"method": "POST", "path": "/proxy/orderkit/v1/x"}


@pytest.fixture(scope="module", autouse=True)
def _registry() -> Iterator[None]:
    """Forget this module's secrets: random ones would mask words of other tests."""
    before = registry._forms  # noqa: SLF001 - the registry has no way to forget, on purpose
    yield
    registry._forms = before  # noqa: SLF001


def everything(world: Any, done: Any) -> str:
    """Return all that a task shows."""
    return repr((done.log, done.outputs, done.steps, world.events))


def test_a_secret_reaches_the_service_and_nothing_else(world: Any) -> None:
    world.service.answer = {"echo": TOKEN}
    steps = template(
        step(
            "call",
            "http:backstage:request",
            **REQUEST,
            headers={"Authorization": "Bearer ${{ secrets.token }}"},
        ),
        log("say", "token ${{ secrets.token }}!"),
        log("later", "it was token can4ry"),
    )

    done = world.run(steps, {}, secrets=SECRETS)

    assert world.service.seen[-1][2]["authorization"] == f"Bearer {TOKEN}"
    assert "can4ry/" not in everything(world, done)
    assert done.log[-2:] == ("***", "it was token can4ry")
    assert done.steps["call"]["body"] == {"echo": "***"}


def test_secrets_of_the_installation_are_hidden_too(world: Any) -> None:
    environment = Environment(secrets={"key": "installed-canary"})

    done = world.run(
        template(log("a", "x ${{ environment.secrets.key }}")), {}, environment=environment
    )

    assert done.log == ("***",)


def test_each_may_use_secrets_and_hides_its_items(world: Any) -> None:
    steps = template(
        log("a", "${{ each.value }}", each=["plain", "key ${{ secrets.token }}"]),
        log("b", "${{ each.value }}", each="${{ [secrets.token] }}"),
    )

    assert world.run(steps, {}, secrets=SECRETS).log == ("plain", "***", "***")


def test_what_was_made_with_a_secret_is_hidden_as_a_whole(world: Any) -> None:
    steps = template(
        log("a", "${{ secrets.token | upper }}"),
        log("b", "is " + TOKEN.upper() + " shown?"),
    )

    assert world.run(steps, {}, secrets=SECRETS).log == ("***", "is *** shown?")


def test_what_cannot_be_made_without_the_secret_is_hidden_as_a_whole(world: Any) -> None:
    host = world.forge.base_url.removeprefix("http://")
    secrets = {"place": f"{host}?owner=can4ry-team&repo=r"}
    steps = template(log("a", "${{ (secrets.place | parseRepoUrl).owner }}"))

    done = world.run(steps, {}, secrets=secrets)

    assert done.log == ("***",)


class Leak(NamedTuple):
    reason: str
    steps: tuple[dict[str, Any], ...]


FAILURES = [
    Leak("the value an action refuses", (step("a", "fs:rename", files="${{ secrets.token }}"),)),
    Leak(
        "a value of the wrong type",
        (step("a", "debug:log", message={"deep": "${{ secrets.token }}"}),),
    ),
    Leak("a path that leaves", (step("a", "fs:delete", files=["../${{ secrets.token }}"]),)),
    Leak("an each that is not a list", (log("a", each="${{ secrets.token }}"),)),
    Leak(
        "a name the catalog lacks",
        (step("a", "catalog:fetch", entityRef="component:${{ secrets.token }}"),),
    ),
    Leak(
        "a long text that is cut",
        (step("a", "catalog:register", catalogInfoUrl="x" * 170 + "${{ secrets.token }}" * 9),),
    ),
    Leak("a folder's name", (step("a", "fetch:plain", url="./x-${{ secrets.token }}"),)),
]


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.reason)
def test_errors_do_not_tell(world: Any, case: Leak) -> None:
    with pytest.raises(OrderkitError) as refused:
        world.run(template(*case.steps), {}, secrets=SECRETS)

    error = refused.value
    shown = repr((str(error), error.hint, vars(error), world.events))
    assert "can4ry" not in shown
    assert "***" in str(error)


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ({"x": "${{ steps.call.output.body.echo }}"}, "as a value"),
        ({"text": [{"content": "see ${{ steps.call.output.body.echo }}"}]}, "inside a text"),
        ({"x": {"y": ["${{ steps.call.output.body.encoded }}"]}}, "encoded, deep inside"),
    ],
)
def test_a_secret_in_the_output_is_refused(world: Any, where: Any, reason: str) -> None:
    encoded = base64.b64encode(TOKEN.encode()).decode()
    world.service.answer = {"echo": TOKEN, "encoded": encoded}
    call = step("call", "http:backstage:request", **REQUEST)

    with pytest.raises(RefusedError, match="output") as refused:
        world.run(template(call, output=where), {}, secrets=SECRETS), reason

    assert "can4ry" not in repr(vars(refused.value)) + str(refused.value)


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        (template(log("a", **{"if": "${{ secrets.token }}"})), "steps.a.if"),
        (template(output={"x": "${{ secrets.token }}"}), "output.x"),
        (template(output={"x": "{% if secrets.token %}y{% endif %}"}), "output.x"),
        (template(output={"x": "${{ environment.secrets.key }}"}), "output.x"),
        (template(output={"links": [{"if": "${{ secrets['token'] }}"}]}), r"output\.links"),
    ],
)
def test_secrets_outside_input_and_each_are_refused(world: Any, bad: str, place: str) -> None:
    with pytest.raises(InvalidInputError, match=place) as refused:
        world.run(bad, {}, secrets=SECRETS)

    assert "undefined" in refused.value.hint


def test_the_word_alone_is_no_secret(world: Any) -> None:
    output = {"x": "${{ 'secrets' }} ${{ parameters.secrets }} keep your secrets"}

    assert world.run(template(output=output), {}).outputs["x"].startswith("secrets")


SCHEMA = {
    "type": "object",
    "required": ["token"],
    "additionalProperties": False,
    "properties": {"token": {"type": "string", "pattern": "^can4ry"}},
}


@pytest.mark.parametrize(
    ("secrets", "message"),
    [
        ({}, r"secrets\.token is missing"),
        ({"token": "other-canary"}, r"secrets\.token: '\*\*\*' is refused .*'pattern'"),
        ({"token": TOKEN, "more": "x-canary"}, "it knows token"),
        ({"token": "abc"}, "fewer than 4 characters"),
        ({"token": "can4ry\ud800"}, "half a character"),
    ],
)
def test_secrets_are_checked_without_being_shown(world: Any, secrets: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as refused:
        world.run(template(secrets={"schema": SCHEMA}), {}, secrets=secrets)

    assert "canary" not in str(refused.value)


@given(
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="*"), min_size=4, max_size=40
    )
)
def test_no_form_of_a_secret_passes(secret: str) -> None:
    assume(len(" ".join(secret.split())) >= 4)
    masker = Masker([secret])
    forms = [
        secret,
        json.dumps(secret)[1:-1],
        repr(secret)[1:-1],
        quote(secret, safe=""),
        shorten(secret, limit=100),
    ]

    for form in forms:
        shown = masker.text(f"<{form}>")
        assert "***" in shown
        assert form not in shown
