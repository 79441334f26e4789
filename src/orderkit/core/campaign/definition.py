"""
``campaigns/<name>.yaml`` of the ledger: one change over many orders.

    spec:
      reason: the old form wrote "undefined" into notes
      what:
        fields:                              # or template: {}, version: {to: v1beta1}
                                             # or revision: {to: newest, minAge: 1d}
          set: {stage: stage2}
          compute: {budget: spec.budget * 2} # CEL over spec, status, metadata and order
          grow: {laps: 10, guests: [eve]}    # at least 10; the list has eve
          remove: [note]
      which: {kit: garage, where: spec.note == 'undefined'}
      how: kit                               # direct, or review: a pull request for each order
      waves: [{name: canary, count: 3}, {share: 25, pause: 1h}, {approve: true}]
      gates: {ready: 10m, soak: 5m, when: status.stage == 'stage2'}
      stop: {failed: 1, then: takeBack}
      windows: [{days: [mon, tue], from: '09:00', to: '16:00', zone: Europe/Berlin}]
      pace: {perMinute: 60, inFlight: 10}

It names nobody: a campaign acts for whoever starts or resumes it, so that a file that somebody puts
into the ledger gives no rights.

`turn` says how many orders may be begun now; times are seconds of any clock that does not jump.
`campaign_of` makes a campaign of one wave from edits as people type them (``orderkit change
--kit``). Both are pure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from zoneinfo import available_timezones

from msgspec import Meta
from msgspec import field as shape_field

from ground.errors import InvalidInputError, OrderkitError, raise_problems
from ground.names import NAME_MAX, check_label
from ground.shapes import StrictShape
from orderkit.core.documents import read_document, write_document
from orderkit.core.durations import parse_duration
from orderkit.core.kit.kit_file import How
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_terms import MaintenanceWindow
from orderkit.core.order.change import EditTarget, FieldEdit, resolve

FOLDER = PurePosixPath("campaigns")
CAMPAIGN_TRAILER = "Orderkit-Campaign"
STEP_TRAILER = "Orderkit-Campaign-Step"
"""Trailers of a commit that a campaign made: its id, and wave and attempt."""

_Text = Annotated[str, Meta(min_length=1, max_length=500)]
_Name = Annotated[str, Meta(min_length=1)]
_Names = Annotated[tuple[_Name, ...], Meta(extra_json_schema={"uniqueItems": True})]
_Count = Annotated[int, Meta(ge=1, le=100_000, description="a whole number from 1 on")]
_Percent = Annotated[int, Meta(ge=1, le=100, description="a percentage: 1 to 100")]
_Duration = Annotated[
    str, Meta(pattern="^[1-9][0-9]{0,5}[smhdw]$", description="for example 30s, 10m, 8h or 2d")
]


class FieldValues(StrictShape, frozen=True):
    """Values that the orders get. A field may be named once."""

    set: Mapping[str, Any] = {}
    compute: Mapping[str, _Text] = {}
    """Field -> CEL over the order's own values."""
    grow: Mapping[str, Any] = {}
    """Field -> the least a number becomes, or what a list has at least."""
    remove: _Names = ()

    @property
    def named(self) -> tuple[str, ...]:
        """Every field, as often as it is named."""
        return (*self.set, *self.compute, *self.grow, *self.remove)


class TemplateFiles(StrictShape, frozen=True):
    """The generated files of orders' repositories follow the pack's present skeleton."""

    paths: _Names = ()
    """Patterns such as ``manifests/*``; empty: every file of the skeleton."""


class VersionTarget(StrictShape, frozen=True):
    """The XRs move to another version of the XRD, by the conversions of kit.yaml."""

    to: _Name
    """The version that the kit's Compositions refer to."""


class RevisionTarget(StrictShape, frozen=True):
    """The orders are pinned to a revision of the kit's Composition, or are no more."""

    to: _Name
    """``newest``, ``current`` (what each has), ``automatic`` (pinned no more), or a name."""
    min_age: _Duration | None = None
    """How old the revision is at least when the campaign starts."""


class RunProgram(StrictShape, frozen=True):
    """Somebody's own Python program edits the files of each order, confined."""

    program: Annotated[str, Meta(min_length=1, max_length=50_000)]
    """It defines ``edit(order)`` and returns the files that change: path and text, or None."""
    files: _Names = ()
    """Patterns of the files that it gets; empty: every text file."""


class What(StrictShape, frozen=True):
    """The change: one of these."""

    fields: FieldValues | None = None
    template: TemplateFiles | None = None
    version: VersionTarget | None = None
    revision: RevisionTarget | None = None
    run: RunProgram | None = None

    @property
    def kinds(self) -> list[str]:
        """The kinds that are given; a good file has one."""
        return [name for name in self.__struct_fields__ if getattr(self, name) is not None]

    @property
    def kind(self) -> str:
        """What kind of change it is."""
        return self.kinds[0]


class Which(StrictShape, frozen=True):
    """The orders."""

    kit: _Name
    teams: _Names = ()
    orders: _Names = ()
    """Empty: every order of the kit; an order that is placed meanwhile is found too."""
    but: _Names = shape_field(name="except", default=())
    where: str = ""
    """A CEL condition over ``spec``, ``status``, ``metadata`` and ``order``."""
    share: _Percent | None = None
    """Only so many of them."""

    @property
    def is_open(self) -> bool:
        """Whether an order that is placed later belongs to it too."""
        return not self.orders and self.share is None

    @property
    def is_whole(self) -> bool:
        """Whether it is every order of the kit."""
        return self.is_open and not (self.teams or self.but or self.where)


class Wave(StrictShape, frozen=True):
    """Orders that are changed together; without orders, count or share: all that are left."""

    name: str = ""
    orders: _Names = ()
    count: _Count | None = None
    share: _Percent | None = None
    """Of all orders of the campaign."""
    pause: _Duration | None = None
    """How long after the wave before it begins."""
    approve: bool = False
    """It begins when somebody resumes the campaign."""


class Gates(StrictShape, frozen=True):
    """What must hold for an order before its wave is over."""

    ready: _Duration = "15m"
    """Within this time it is Ready at the campaign's commit, or it has failed."""
    failing: _Duration = "1m"
    """An order that is Failing for so long has failed already."""
    soak: _Duration | None = None
    """How long all orders of a wave stay Ready before the next wave."""
    when: str = ""
    """A CEL condition over ``spec``, ``status``, ``metadata`` and ``order``."""


class StopRule(StrictShape, frozen=True):
    """When the campaign stops, and what becomes of the wave."""

    failed: _Count = 1
    """It stops as soon as so many orders of a wave have failed."""
    share: _Percent | None = None
    """Instead: as soon as more than this share of a wave has failed."""
    then: Literal["stop", "takeBack"] = "stop"


class Pace(StrictShape, frozen=True):
    """How fast, at most."""

    per_minute: Annotated[int, Meta(ge=1, le=10_000)] = 300
    in_flight: Annotated[int, Meta(ge=1, le=1_000)] = 20
    """Orders that are changed and not Ready yet."""


class Campaign(StrictShape, frozen=True):
    """One change over many orders."""

    name: str
    reason: _Text
    what: What
    which: Which
    how: Literal["kit", "direct", "review"] = "kit"
    waves: tuple[Wave, ...] = ()
    gates: Gates = Gates()
    stop: StopRule = StopRule()
    windows: tuple[MaintenanceWindow, ...] = ()
    """When orders may be changed; empty: at any time."""
    pace: Pace = Pace()

    def to_yaml(self) -> str:
        """Write the file."""
        return write_document("Campaign", self, named="name")


def path_of(name: str) -> PurePosixPath:
    """Return the path of a campaign's file in the ledger."""
    return FOLDER / f"{name}.yaml"


def names_in(paths: Iterator[PurePosixPath]) -> list[str]:
    """Return the campaigns that the ledger's paths have, sorted."""
    folder = FOLDER.parts  # a ledger has tens of thousands of paths, and `parent` makes another
    return sorted(p.stem for p in paths if p.parts[:-1] == folder and p.suffix == ".yaml")


def seconds(text: str) -> float:
    """Return the seconds of a duration that was checked."""
    if text.endswith("s"):
        return float(text[:-1])
    return parse_duration(text, field="").total_seconds()


def duration(text: str | None) -> timedelta:
    """Return a duration that was checked; nothing is no time."""
    return timedelta(seconds=seconds(text)) if text else timedelta(0)


def parse(data: bytes | str, *, name: str) -> Campaign:
    """
    Read the file.

    Args:
        name: What messages call the file.

    Raises:
        InvalidInputError, SeveralProblemsError: A key or value is refused.
    """
    campaign = read_document(Campaign, data, name=name, kinds=("Campaign",), named="name")
    raise_problems(list(_problems(campaign, name)))
    return campaign


def _problems(campaign: Campaign, file: str) -> Iterator[OrderkitError]:
    try:
        check_label(f"{file}: metadata.name", campaign.name, longest=NAME_MAX)
    except InvalidInputError as error:
        yield error
    yield from _what_problems(campaign.what, f"{file}: spec.what")
    if campaign.which.orders and campaign.which.share:
        rule, hint = "has no meaning beside orders", "leave one of the two out"
        yield InvalidInputError(f"{file}: spec.which.share", campaign.which.share, rule, hint=hint)
    for number, wave in enumerate(campaign.waves):
        yield from _wave_problems(wave, number, file)
    for number, window in enumerate(campaign.windows):
        if window.zone not in available_timezones():
            field, rule = f"{file}: spec.windows[{number}].zone", "is not a time zone"
            yield InvalidInputError(field, window.zone, rule, hint="for example Europe/Berlin")


def _what_problems(what: What, at: str) -> Iterator[OrderkitError]:
    if len(what.kinds) != 1:
        hint = f"give one of {', '.join(what.__struct_fields__)}"
        yield InvalidInputError(at, what.kinds or None, "is missing one kind", hint=hint)
    if what.run is not None:
        yield from _program_problems(what.run.program, f"{at}.run.program")
    pinned = what.revision
    if pinned and pinned.min_age and pinned.to in ("current", "automatic"):
        rule, hint = f"has no meaning with to: {pinned.to}", "leave it out"
        yield InvalidInputError(f"{at}.revision.minAge", pinned.min_age, rule, hint=hint)
    if what.fields is None:
        return
    named = [name.removeprefix("spec.") for name in what.fields.named]
    if not named:
        hint = "give set, compute, grow or remove"
        yield InvalidInputError(f"{at}.fields", None, "is missing a field", hint=hint)
    for name in sorted({name for name in named if named.count(name) > 1}):
        hint = "name each field once"
        yield InvalidInputError(f"{at}.fields", name, "is named twice", hint=hint)


def _program_problems(program: str, at: str) -> Iterator[OrderkitError]:
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        rule = f"is no Python{f' (line {line})' if line else ''}: {error}"
        yield InvalidInputError(at, program[:40], rule, hint="try it with python -m py_compile")
        return
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if "edit" not in names:
        hint = "write: def edit(order): return {'README.md': ...}"
        yield InvalidInputError(at, names or None, "is missing a function edit(order)", hint=hint)


def _wave_problems(wave: Wave, number: int, file: str) -> Iterator[OrderkitError]:
    given = [bool(wave.orders), wave.count is not None, wave.share is not None]
    if sum(given) > 1:
        yield InvalidInputError(
            f"{file}: spec.waves[{number}]", wave.name, "says in two ways which orders it has",
            hint="give one of orders, count and share; none of them: all orders that are left",
        )  # fmt: skip
    if number == 0 and (wave.pause or wave.approve):
        key = "pause" if wave.pause else "approve"
        yield InvalidInputError(
            f"{file}: spec.waves[0].{key}", wave.pause or True, "has no wave before it",
            hint="leave it out: the first wave begins when somebody starts the campaign",
        )  # fmt: skip


BATCH = 8
"""How many orders are begun, at most, before all are looked at again."""
_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Turn:
    """How many may begin now, and after how many seconds to ask again if that is none."""

    count: int
    wait_s: float = 0.0


def turn(pace: Pace, begun_s: Sequence[float], now_s: float) -> Turn:
    """
    Return how many orders may begin now.

    In no minute more begin than the pace allows, wherever the minute begins.

    Args:
        begun_s: When orders were begun, oldest first.
    """
    recent = [begun for begun in begun_s if begun > now_s - _MINUTE_S]
    room = pace.per_minute - len(recent)
    if room > 0:
        return Turn(room)
    freeing = recent[len(recent) - pace.per_minute]
    return Turn(0, freeing + _MINUTE_S - now_s)


_PLAIN_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


def campaign_of(
    name: str,
    kit: Kit,
    which: Which,
    edits: Sequence[FieldEdit],
    *,
    how: How | None = None,
    reason: str = "",
) -> Campaign:
    """
    Return the campaign that makes these edits in all orders.

    Raises:
        InvalidInputError: A field or value is refused, or an edit works on one order only.
    """
    set_: dict[str, Any] = {}
    compute: dict[str, str] = {}
    grow: dict[str, list[Any]] = {}
    remove: list[str] = []
    for edit in edits:
        target = resolve(kit, edit)
        if target.op == "set":
            set_[target.path] = target.value
        elif target.op == "unset":
            remove.append(target.path)
        elif target.is_sum:
            compute[target.path] = _sum(edit, target)
        elif target.op == "add":
            grow.setdefault(target.path, []).append(target.value)
        else:
            raise InvalidInputError(
                edit.path, edit.value, "cannot be taken out of the lists of many orders",
                hint="set the whole list, or compute it in the file of a campaign:"
                f" spec.{target.path}.filter(x, x != ...)",
            )  # fmt: skip
    fields = FieldValues(set=set_, compute=compute, grow=grow, remove=tuple(remove))
    return Campaign(
        name=name,
        reason=reason or f"{', '.join(fields.named)} of all orders of {kit.name}",
        what=What(fields=fields),
        which=which,
        how=how.value if how else "kit",
    )


def _sum(edit: FieldEdit, target: EditTarget) -> str:
    if not _PLAIN_PATH.fullmatch(target.path):
        hint = "write the file of a campaign, and compute it there"
        raise InvalidInputError(edit.path, edit.value, "is no plain field to add to", hint=hint)
    sign = "+" if target.op == "add" else "-"
    return f"spec.{target.path} {sign} {target.value}"
