"""Who pushes a commit that looks like a note of the lease is shown as who pushed it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from consolebrowser import Browser
from pusher import MALLORY, Pusher
from tests.component.leases.conftest import entry_of

from ground.names import CommitSha
from orderkit.cli.connecting import token
from orderkit.flows.lease.sweeping import SWEEPER
from orderkit.flows.order.activity import ActivityQuery, activity, is_lease_note
from orderkit.flows.order.commit_judging import SignatureVerdict
from orderkit.flows.order.order_history import history
from orderkit.flows.order.viewing import Viewer, view
from orderkit.flows.platform import Platform
from orderkit.ports.forge import Commit
from orderkit.ports.requesters import Requester
from orderkit_standins.platform import BOT
from orderkit_standins.serve_platform import Running

XR = PurePosixPath("manifests/xgarage.yaml")
EVE = Requester("user:default/eve")


@pytest.fixture
def mallory(running_platform: Running, order: str, tmp_path: Path) -> Pusher:
    forge = running_platform.settings.forge
    url = f"{forge.url}/{entry_of(order).repository}.git"
    return Pusher.cloned(tmp_path, url, BOT, token(forge))


def like_a_sweep(mallory: Pusher, order: str) -> None:
    """The sweep's words and trailers, and another stage."""
    message = (
        f"{order}: expires at 2030-01-01T00:00:00Z\n\n"
        f"Orderkit-Operation: lease-{order}-2030-01-01T00:00:00Z-after-01234567\n"
        f"Orderkit-Requester: {SWEEPER}\n"
    )
    mallory.commit(message, mallory.replace(str(XR), "stage2", "stage3"))


def with_its_signature(mallory: Pusher, order: str) -> None:
    """The whole message of the true note, which is the newest commit, and another stage."""
    assert f"lease-{order}-" in mallory.message("HEAD")
    mallory.commit(mallory.message("HEAD"), mallory.replace(str(XR), "stage2", "stage3"))


def a_second_time(mallory: Pusher, order: str) -> None:
    """The true note, message and change, once more after its change was taken back."""
    note, text = mallory.message("HEAD"), (mallory.clone / XR).read_text()
    mallory.git("checkout", "--quiet", "HEAD~1", "--", str(XR))
    mallory.commit(f"{order} is for ever", {})
    mallory.commit(note, {str(XR): text})


@pytest.mark.parametrize(
    ("forge", "verdict", "fields"),
    [
        (like_a_sweep, SignatureVerdict.MISSING, ["stage"]),
        (with_its_signature, SignatureVerdict.INVALID, ["stage"]),
        (a_second_time, SignatureVerdict.COPIED, []),
    ],
)
def test_a_forged_note_of_the_lease_is_the_last_change_and_by_hand(
    platform: Platform,
    order: str,
    mallory: Pusher,
    *,
    forge: Callable[[Pusher, str], None],
    verdict: SignatureVerdict,
    fields: list[str],
) -> None:
    forge(mallory, order)
    mallory.push()
    pushed = mallory.git("rev-parse", "HEAD")

    newest = history(platform, order)[0]
    last = view(platform, order, Viewer(EVE)).last_change
    (entry, *_) = (
        each for each in activity(platform, ActivityQuery()).entries if each.commit == pushed
    )

    assert (newest.commit.id, newest.signature, newest.is_lease_note) == (pushed, verdict, False)
    assert last is not None
    assert [last[key] for key in ("commit", "author", "byHand", "requester", "leaseNote")] == [
        pushed, MALLORY, True, "", False
    ]  # fmt: skip
    assert [difference["field"] for difference in last["fields"]] == fields
    assert (entry.by_hand, entry.who) == (True, MALLORY)


def test_the_console_names_who_pushed_a_forged_note(
    running_platform: Running, order: str, mallory: Pusher
) -> None:
    settings, team = running_platform.settings, entry_of(order).team
    like_a_sweep(mallory, order)
    mallory.push()
    browser = Browser(settings.service.url)
    lead = Requester(EVE.ref, "a one-time link", frozenset({f"group:default/{team}"}))
    assert browser.sign_in(token(settings.service), lead).status == 200

    shown = browser.get(f"/orders/{order}").page.text

    last = shown.partition("Last change History ")[2]
    assert last.startswith(f"{order}: expires at 2030-01-01T00:00:00Z Mallory"), last


def test_a_change_is_no_note_of_the_lease_whatever_its_operation_is_called() -> None:
    """``orderkit change --operation``, of a kit that names no changes."""
    trailers = "Orderkit-Operation: lease-1\nOrderkit-Requester: user:default/eve\n"
    note = Commit(CommitSha("0" * 40), f"a note\n\n{trailers}", ())
    change = replace(note, message=f"{note.message}Orderkit-Request: 0123456789abcdef\n")

    assert [is_lease_note(commit) for commit in (note, change)] == [True, False]
