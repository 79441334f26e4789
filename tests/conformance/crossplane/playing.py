"""
What a scene can say, and how it is played: order, change, state facts, take the next step.

A scene is a plain function over `Play`; `scene` registers it under its name. Each step says which
state it waits for, and what is seen then is its account. On a live core a step ends when nothing
has moved for a while; elsewhere it ends when what is seen is what was expected, or when patience
ends: so no timing decides a comparison.
"""

from __future__ import annotations

import itertools
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.crossplane.furnishing import OWNER
from tests.conformance.crossplane.seeing import Account, Eyes

from ground.objects.kube_objects import Manifest, ObjectKey, condition, dig, metadata
from orderkit.ports.cluster import Cluster

Hold = Callable[[Manifest | None], bool]
"""A statement about an XR; None: it is not there."""
Expected = Callable[[str, str], Account | None]
"""What a step of a scene should show; None: nobody knows yet."""
POKE = "scene.example.org/poked"


@dataclass(frozen=True, slots=True)
class Core:
    """A core on a cluster, and how patiently it is looked at."""

    eyes: Eyes
    expected: Expected = lambda _scene, _step: None
    quiet_s: float = 6.0
    """How long nothing may move before a step ends, where nothing is expected."""
    patience_s: float = 90.0

    @property
    def cluster(self) -> Cluster:
        return self.eyes.cluster


@dataclass(slots=True)
class Play:
    """One scene on one core."""

    scene: str
    core: Core
    roots: tuple[ObjectKey, ...] = ()
    accounts: dict[str, Account] = field(default_factory=dict)
    _last: dict[ObjectKey, Manifest] = field(default_factory=dict)
    """What was delivered last."""
    _pokes: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def apply(self, *manifests: Manifest) -> None:
        """Deliver objects as Argo CD delivers orders: lists are replaced, not merged by key."""
        cluster = self.core.cluster
        for manifest in manifests:
            bare = {key: part for key, part in manifest.items() if key != "status"}
            there = cluster.get(ObjectKey.of(manifest))
            if there is None:
                cluster.apply(bare, owner=OWNER)
            for part in ("spec", "data") if there is not None else ():
                if part in manifest:
                    gone = dict.fromkeys(self._delivered(manifest, part) - manifest[part].keys())
                    patch: Manifest = {part: {**gone, **manifest[part]}}
                    cluster.patch(ObjectKey.of(manifest), patch, owner=OWNER)
            self._last[ObjectKey.of(manifest)] = manifest
            if "status" in manifest:
                self._tell(manifest)

    def _delivered(self, manifest: Manifest, part: str) -> set[str]:
        return set(self._last.get(ObjectKey.of(manifest), {}).get(part) or ())

    def _tell(self, manifest: Manifest) -> None:
        place = {k: v for k, v in metadata(manifest).items() if k in ("name", "namespace")}
        head = {key: manifest[key] for key in ("apiVersion", "kind", "status")}
        self.core.cluster.apply({**head, "metadata": place}, owner=OWNER, status=True)

    def delete(self, *keys: ObjectKey) -> None:
        for key in keys:
            self.core.cluster.delete(key)

    def poke(self) -> None:
        """
        Wake the XRs.

        Crossplane 2.3 looks at required resources again when an answer's time to live ends.
        """
        for root in self.roots:
            if self.core.cluster.get(root) is not None:
                note = {"metadata": {"annotations": {POKE: str(next(self._pokes))}}}
                self.core.cluster.patch(root, note, owner="poke")

    def step(self, name: str, key: ObjectKey, *holds: Hold, root: Hold | None = None) -> None:
        """
        Wait until all of it holds of one XR, and take down what there is.

        Args:
            root: What holds then of the scene's first XR, where `key` is one that it composes.
        """
        assert name not in self.accounts, f"two steps named {name}"
        self._until(name, key, holds)
        if root is not None:
            self._until(name, self.roots[0], [root])
        wanted = self.core.expected(self.scene, name)
        self.accounts[name] = self._quiet() if wanted is None else self._equal(wanted)

    def _until(self, name: str, key: ObjectKey, holds: Iterable[Hold]) -> None:
        deadline = time.monotonic() + self.core.patience_s
        while True:
            seen = self.core.cluster.get(key)
            if all(hold(seen) for hold in holds):
                return
            if time.monotonic() > deadline:
                said = dig(seen, "status", default="no status") if seen else "it is not there"
                raise AssertionError(f"{self.scene}, {name}: {key} did not get there: {said}")
            time.sleep(0.02)

    def _quiet(self) -> Account:
        """Look until nothing moved for a while."""
        last, since = self._look(), time.monotonic()
        deadline = since + self.core.patience_s
        while time.monotonic() - since < self.core.quiet_s:
            time.sleep(0.1)
            seen = self._look()
            if seen != last:
                last, since = seen, time.monotonic()
            assert time.monotonic() < deadline, f"{self.scene}: never quiet"
        return last

    def _equal(self, wanted: Account) -> Account:
        """Look until it is what is wanted, twice in a row, or patience ends."""
        deadline, before = time.monotonic() + self.core.patience_s, None
        while time.monotonic() < deadline:
            seen = self._look()
            if seen == before == wanted:
                break
            before = seen
            time.sleep(0.05)
        return seen

    def _look(self) -> Account:
        return self.core.eyes.account(self.roots)


def settled(ready: str = "True") -> Hold:
    """
    Synced, and Ready as said, of the newest generation.

    Responsive too: it is said before a round begins. A round that began before a change says
    Synced and Ready of the changed generation, though it composed the one before.
    """
    parts = (says("Responsive", "True"), says("Synced", "True"), says("Ready", ready))
    return lambda xr: all(part(xr) for part in parts)


def says(type_: str, status: str, text: str = "") -> Hold:
    """A condition, of the newest generation if it says of which, with this text in it."""

    def hold(xr: Manifest | None) -> bool:
        entry = (condition(xr, type_) if xr else None) or {}
        generation = metadata(xr or {}).get("generation")
        current = entry.get("observedGeneration", generation) == generation
        told = f"{entry.get('reason')} {entry.get('message', '')}"
        return current and entry.get("status") == status and text in told

    return hold


def shows(**fields: Any) -> Hold:
    """Fields of the status, by ``a__b`` for ``a.b``."""
    return lambda xr: (
        bool(xr)
        and all(dig(xr, "status", *name.split("__")) == value for name, value in fields.items())
    )


def gone(xr: Manifest | None) -> bool:
    """It is not there."""
    return xr is None


Act = Callable[[Play], None]
SCENES: dict[str, Act] = {}


def scene(act: Act) -> Act:
    """Register a scene under its function's name."""
    assert act.__name__ not in SCENES, f"two scenes named {act.__name__}"
    assert act.__doc__, f"{act.__name__} states no fact"
    SCENES[act.__name__] = act
    return act


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a scene: its accounts by step, what was said, and why it ended early."""

    accounts: dict[str, Account]
    events: frozenset[str]
    failure: str = ""


def play_all(core: Core, names: Iterable[str], *, at_once: int = 4) -> dict[str, Outcome]:
    """Play scenes, several at a time; each has objects of its own."""
    with ThreadPoolExecutor(at_once) as pool:
        futures = {name: pool.submit(_play, core, name) for name in names}
        return {name: future.result() for name, future in futures.items()}


def _play(core: Core, name: str) -> Outcome:
    play = Play(name, core)
    failure = ""
    try:
        SCENES[name](play)
    except Exception:  # noqa: BLE001 - the test of this scene reports it
        failure = traceback.format_exc()
    return Outcome(play.accounts, frozenset(core.eyes.events(play.roots)), failure)
