"""
The scopes of a template's variables, and macros, which are bodies with a scope of their own.

There are two kinds of binding, as in the code that Nunjucks generates. ``bound`` names (loop
variables, macros, parameters) are resolved lexically, even when undefined. ``variables`` (``set``,
defaults of parameters) are looked up through the frames at run time, and undefined ones are
skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from softwaretemplates.render import refusals
from softwaretemplates.render.javascript import UNDEFINED, Function, Safe, Undefined, Value
from softwaretemplates.render.refusals import LimitFault, UnsupportedFault

__all__ = ["CALLS_MAX", "ROUNDS_MAX"]

ROUNDS_MAX = 200_000
"""Maximum rounds of all loops of one rendering together."""
CALLS_MAX = 50
"""Deepest nesting of macro calls."""

RunBody = Callable[[int, "Frame"], str]


class Budget:
    """What one rendering may still use, the value it captured, and how it renders a body."""

    __slots__ = ("calls", "captured", "rounds", "run")

    def __init__(self, run: RunBody) -> None:
        self.rounds, self.calls = ROUNDS_MAX, 0
        self.captured: Value = UNDEFINED
        self.run = run

    def spend_round(self) -> None:
        self.rounds -= 1
        if self.rounds < 0:
            raise LimitFault(f"more than {ROUNDS_MAX} rounds of loops")


class Encoded(str):  # noqa: SLOT000 - a str can have no slots
    """A text that was printed, with the JSON of the values in it."""

    json: str

    def __new__(cls, text: str, json: str) -> Self:
        encoded = super().__new__(cls, text)
        encoded.json = json
        return encoded

    def __str__(self) -> str:
        return self  # the code that Jinja2 generates calls str()


class Frame:
    """One scope: the context, the template, a loop, a macro, a block or a call's body."""

    __slots__ = (
        "barrier", "bound", "budget", "dynamic", "exports", "hidden", "macros", "parent", "stale",
        "strict", "variables",
    )  # fmt: skip

    def __init__(
        self,
        variables: dict[str, Value],
        parent: Frame | None,
        budget: Budget,
        *,
        strict: bool = False,
        barrier: bool = False,
    ) -> None:
        self.variables, self.parent, self.budget = variables, parent, budget
        self.strict, self.barrier = strict, barrier
        self.bound: dict[str, Value] = {}
        self.hidden = False
        """The bound names are not variables of the frame at run time."""
        self.exports: dict[str, Value] | None = None
        """The template's own variables, as macros see them."""
        self.dynamic: Frame | None = None
        """The calling frame, if this is the body of a call."""
        self.macros: set[str] = set()
        """Macros that this round of a loop has defined."""
        self.stale: set[str] = set()
        """Macros that earlier rounds have defined and this one has not."""

    def inner(self, *, barrier: bool = False) -> Frame:
        """Return a scope inside this one."""
        return Frame({}, self, self.budget, strict=self.strict, barrier=barrier)

    def find(self, name: str) -> Value:
        """
        Return the value of a name; undefined if there is none.

        Raises:
            UnsupportedFault: In a call's body, the engines would find different values.
        """
        frame: Frame | None = self
        undefined: Value = None
        while frame is not None:
            if name in frame.bound:
                return frame.bound[name]
            if name in frame.stale:
                raise UnsupportedFault.of(refusals.STALE_MACRO, name)
            if name in frame.variables:
                value = frame.variables[name]
                if not isinstance(value, Undefined):
                    return value
                undefined = undefined or value
            if frame.dynamic is not None:
                return frame.find_both(name)
            frame = frame.parent
        return self._unknown(name) if undefined is None else self._set_undefined(name, undefined)

    def find_both(self, name: str) -> Value:
        """Look up a name both around a call's body and in the macro that calls it."""
        frame = self.parent
        while frame is not None:
            if name in frame.bound:
                return frame.bound[name]
            frame = frame.parent
        around = self.parent.find(name) if self.parent else UNDEFINED
        caller = self.dynamic.find(name) if self.dynamic else UNDEFINED
        if around is not caller and not (
            isinstance(around, Undefined) and isinstance(caller, Undefined)
        ):
            raise UnsupportedFault.of(refusals.DYNAMIC_NAME, name)
        return around

    def _unknown(self, name: str) -> Value:
        if not self.strict:
            return UNDEFINED
        outermost = self
        while outermost.parent is not None:
            outermost = outermost.parent
        names = ", ".join(k for k, v in outermost.variables.items() if not isinstance(v, Function))
        return Undefined(f"'{name}' is used, but there is no such name here", f"names: {names}")

    def _set_undefined(self, name: str, value: Undefined) -> Undefined:
        """Return an undefined variable; it says why it is undefined if strictness is on."""
        if not self.strict or value.missing:
            return value
        return Undefined(
            f"'{name}' is used, but it was set to a value that is undefined",
            'give it a default where it is set: `x | default("…", true)`',
        )

    def define_macro(self, name: str, signature: Signature, body: int) -> None:
        """Define a macro here. It sees the template's own variables, not those of a loop."""
        template = self
        while template.exports is None and template.parent is not None:
            template = template.parent
        if template.exports is None or template.parent is None:
            raise RuntimeError(name)
        macro = Macro(signature, body, template.parent, around=False)
        self.bound[name] = macro
        if template is self:
            template.exports[name] = macro
        else:
            self.macros.add(name)
            self.stale.discard(name)

    def forget_macros(self) -> None:
        """Begin a round of a loop: macros of the round before are no longer defined."""
        for name in self.macros:
            del self.bound[name]
        self.stale |= self.macros
        self.macros = set()

    def assign(self, name: str, value: Value) -> None:
        """
        Assign in the loop or outer scope where the name is already set, otherwise here.

        Raises:
            UnsupportedFault: The engines would assign elsewhere, or the name is a loop's macro.
        """
        if self.exports is not None:
            self.exports[name] = value
        frame: Frame | None = self
        while frame is not None:
            if name in frame.macros or name in frame.stale:
                raise UnsupportedFault.of(refusals.SET_MACRO, name)
            if name in frame.bound:
                frame.bound[name] = value
                if not frame.hidden:
                    return
                break
            if frame.barrier:
                break
            frame = frame.parent
        self._assign_variable(name, value)

    def _assign_variable(self, name: str, value: Value) -> None:
        frame: Frame | None = self
        while frame is not None:
            variables = frame.variables if frame.hidden or name not in frame.bound else frame.bound
            if name in variables and frame is not self:
                if isinstance(variables[name], Undefined) or isinstance(value, Undefined):
                    raise UnsupportedFault.of(refusals.UNDEFINED_VARIABLE, name)
                variables[name] = value
                return
            if name in variables and not isinstance(variables[name], Undefined):
                variables[name] = value
                return
            if frame.barrier:
                break
            frame = frame.parent
        outside = self.parent.find(name) if self.parent else UNDEFINED
        if isinstance(value, Undefined) and not isinstance(outside, Undefined):
            raise UnsupportedFault.of(refusals.UNDEFINED_VARIABLE, name)
        self.variables[name] = value


GIVEN = " given"
"""Name of the entry that holds a macro's keyword arguments. No template can write it."""


class Keywords(dict[str, Value]):
    """Keyword arguments: the last argument of a call that has any."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a macro: those without a default, then those with one."""

    names: tuple[str, ...]
    defaults: tuple[str, ...]

    def bind(
        self, arguments: tuple[Value, ...], keyword_values: Mapping[str, Value]
    ) -> tuple[dict[str, Value], dict[str, Value]]:
        """Return the values of the names, and those passed for names with defaults."""
        keywords = dict(keyword_values)
        bound = dict(zip(self.names, arguments, strict=False))
        for name in self.names[len(arguments) :]:
            bound[name] = keywords.pop(name, UNDEFINED)
        surplus = arguments[len(self.names) :]
        keywords.update(zip(self.defaults, surplus, strict=False))
        return bound, keywords


class Macro(Function):
    """A macro, or the body of a call block: makes text from arguments."""

    __slots__ = ("_around", "_body", "_home", "_signature")

    def __init__(self, signature: Signature, body: int, home: Frame, *, around: bool) -> None:
        self._signature, self._body = signature, body
        self._home, self._around = home, around
        """The scope of the body: the context, or (`around`) the scope around a call block."""

    def call(
        self, frame: Frame, arguments: tuple[Value, ...], keyword_values: Mapping[str, Value]
    ) -> Safe:
        """
        Return the text for these arguments.

        Raises:
            LimitFault: Macros call each other too deeply.
        """
        budget = self._home.budget
        scope = self._home.inner(barrier=True)
        if self._around:
            scope.dynamic = frame
        scope.bound, keywords = self._signature.bind(arguments, keyword_values)
        scope.variables[GIVEN] = keywords
        if "caller" in keywords:
            scope.variables["caller"] = keywords["caller"]
        budget.calls += 1
        if budget.calls > CALLS_MAX:
            raise LimitFault(f"macros call each other more than {CALLS_MAX} levels deep")
        text = budget.run(self._body, scope)
        budget.calls -= 1
        return Safe(text)


def given(frame: Frame, name: str) -> bool:
    """Return whether a parameter with a default was passed, and set it if so."""
    keywords = frame.variables[GIVEN]
    if name not in keywords:
        return False
    set_parameter(frame, keywords[name], name)
    return True


def set_parameter(frame: Frame, value: Value, name: str) -> None:
    """
    Set a parameter that has a default.

    Raises:
        UnsupportedFault: It is undefined, and an outer scope has a variable of that name.
    """
    if isinstance(value, Undefined) and frame.parent is not None:
        outside = frame.parent.find(name)
        if not isinstance(outside, Undefined):
            raise UnsupportedFault.of(refusals.UNDEFINED_DEFAULT, name)
    frame.variables[name] = value
