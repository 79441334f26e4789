"""
The CEL library's environments: one that type-checks rules as the server does, one that runs them.

The judge knows all functions of the server and the schema's types, but evaluates nothing. The
runner knows the functions that Orderkit evaluates and takes plain values. The library is imported
when the first rule is compiled: the import takes 20 ms, the library 50 MB on disk.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubeschema.cel import cel_declarations
from kubeschema.cel.cel_declarations import OPAQUE, PACKAGE, Declarations
from kubeschema.cel.cel_functions import implementations
from kubeschema.cel.type_shapes import CelType

_UNPLANNED = "No overload found in reference resolve step"
"""The library's error for an expression that type-checks but calls functions it lacks."""

OLD, HAS_OLD = "orderkit_old", "orderkit_has_old"


class UnavailableError(ImportError):
    """The CEL library has no build for this machine."""


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """The judge's result: the fault (empty if the rule is valid) and the tree, if readable."""

    fault: str
    result: str
    """Name of the result type; empty if unknown."""
    serialised: bytes | None


def load() -> Any:
    """
    Import the CEL library.

    Raises:
        UnavailableError: It is not installed on this machine.
    """
    try:
        from cel_expr_python import cel
    except ImportError as error:
        raise UnavailableError(
            "the CEL library (cel-expr-python) has no build for this machine"
        ) from error
    return cel


class Judge:
    """Checks whether the server would accept rules on one schema."""

    def __init__(self, shape: CelType, *, spread: bool = False) -> None:
        """
        Declare the variables.

        Args:
            spread: The object's fields are variables; otherwise it is ``self``.
        """
        self._declarations = Declarations()
        shapes = dict(shape.fields.values()) if spread else {"self": shape}
        self._types = {name: self._declarations.declare(child) for name, child in shapes.items()}
        self._pool: Any = None
        self._made: dict[str, Any] = {}

    def judge(self, expression: str, *, old: str = "") -> RuleVerdict:
        """
        Check an expression over ``self``.

        Args:
            old: How ``oldSelf`` is declared: "" (not declared), "plain" or "optional".
        """
        try:
            compiled = self._environment(old).compile(expression)
        except RuntimeError as error:
            text = str(error)
            return self._run_types(expression, old) if _UNPLANNED in text else _faulty(text)
        return RuleVerdict("", compiled.return_type().name(), compiled.serialize())

    def _run_types(self, expression: str, old: str) -> RuleVerdict:
        """Return tree and result type of a valid expression that only the runner can compile."""
        key = f"running {old}"
        if key not in self._made:
            self._made[key] = _running(self._messages(), self._variables(old), positions=False)
        try:
            compiled = self._made[key].compile(expression)
        except RuntimeError:
            return RuleVerdict("", "", None)
        return RuleVerdict("", compiled.return_type().name(), compiled.serialize())

    def _environment(self, old: str) -> Any:
        if old not in self._made:
            self._made[old] = _new_environment(
                self._messages(), _server_functions(), self._variables(old)
            )
        return self._made[old]

    def _messages(self) -> Any:
        self._pool = self._pool or self._declarations.pool()
        return self._pool

    def _variables(self, old: str) -> dict[str, Any]:
        if not old:
            return self._types
        own = self._types["self"]
        optional = {"type_name": "optional_type", "params": [own]}
        return {**self._types, "oldSelf": own if old == "plain" else optional}


@functools.cache
def runner(*, positions: bool = False) -> Any:
    """
    Return the environment that evaluates expressions.

    Args:
        positions: Declare ``indexOf`` on lists, and none of the functions on strings.
    """
    kinds = {"self": "dyn", "oldSelf": "dyn", OLD: "dyn", HAS_OLD: "bool"}
    variables = {name: {"type_name": kind} for name, kind in kinds.items()}
    return _running(Declarations().pool(), variables, positions=positions)


ADMISSION = ("object", "oldObject", "request", "params", "namespaceObject")
"""Variables of admission policy expressions; ``variables`` are bound around the expression."""


CONDITION = ("spec", "status", "metadata", "old", "new", "cost", "requester", "order")
"""Variables of conditions over an object, and over an order or a change of it."""


@functools.cache
def condition_runner(*, positions: bool = False) -> Any:
    """Return the environment that evaluates conditions over an object; see `runner`."""
    variables = {name: {"type_name": "dyn"} for name in CONDITION}
    return _running(Declarations().pool(), variables, positions=positions)


@functools.cache
def admission_runner(*, positions: bool = False) -> Any:
    """Return the environment that evaluates admission policy expressions; see `runner`."""
    variables = {name: {"type_name": "dyn"} for name in ADMISSION}
    return _running(Declarations().pool(), variables, positions=positions)


@functools.cache
def admission_judge() -> Any:
    """Return the environment that knows all functions of the server and evaluates nothing."""
    variables = {name: {"type_name": "dyn"} for name in ADMISSION}
    return _new_environment(Declarations().pool(), _server_functions("bindings"), variables)


def is_unplanned(error: str) -> bool:
    """Return whether the expression is valid and the library merely lacks one of its functions."""
    return _UNPLANNED in error


def _running(pool: Any, variables: Mapping[str, Any], *, positions: bool) -> Any:
    from google.protobuf import message_factory

    messages = {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in OPAQUE
    }
    signatures = cel_declarations.ours() + (cel_declarations.positions() if positions else [])
    extensions = ("bindings",) if positions else ("bindings", "strings")
    functions = implementations(messages)
    return _new_environment(
        pool,
        _Functions(tuple(signatures), extensions, is_server=False),
        variables,
        {name: functions[name] for name in signatures},
    )


@dataclass(frozen=True, slots=True)
class _Functions:
    """The functions that an environment declares."""

    signatures: tuple[str, ...]
    extensions: tuple[str, ...]
    is_server: bool

    def configuration(self, variables: Mapping[str, Any]) -> Any:
        """Return the configuration with these variables, as the CEL library reads it."""
        text = cel_declarations.configuration(
            self.signatures, variables, *self.extensions, server=self.is_server
        )
        return load().NewEnvConfigFromYaml(text)


@functools.cache
def _server_functions(*extensions: str) -> _Functions:
    return _Functions(tuple(cel_declarations.server()), extensions, is_server=True)


@functools.cache
def _shared_configuration(functions: _Functions) -> Any:
    """Return what environments share: reading it takes ten times as long as making one of them."""
    return functions.configuration({})


def _new_environment(
    pool: Any,
    functions: _Functions,
    variables: Mapping[str, Any],
    function_impls: Mapping[str, Any] | None = None,
) -> Any:
    config, types = _shared_configuration(functions), None
    if any(type_["type_name"] == "optional_type" for type_ in variables.values()):
        # cel-expr-python 0.1.3 knows no member of an optional type that is not declared in a text.
        config = functions.configuration(variables)
    else:
        types = {name: _type_of(type_) for name, type_ in variables.items()}
    return load().NewEnv(pool, config=config, variables=types, function_impls=function_impls)


def _type_of(type_: Mapping[str, Any]) -> Any:
    """Return the CEL library's type for one as a configuration writes it."""
    name, types = type_["type_name"], load().Type
    parameters = [_type_of(parameter) for parameter in type_.get("params", ())]
    if parameters:
        return {"list": types.List, "map": types.Map}[name](*parameters)
    return types(name) if "." in name else getattr(types, name.upper())


def run_source(expression: str, *, optional_old: bool) -> str:
    """
    Return the source that the runner compiles.

    An optional ``oldSelf`` is bound around the rule.
    """
    if not optional_old:
        return expression
    bound = f"{HAS_OLD} ? optional.of({OLD}) : optional.none()"
    return f"cel.bind(oldSelf, {bound}, (\n{expression}\n))"


def _faulty(text: str) -> RuleVerdict:
    """
    Remove the lines that only the library writes.

    The server's faults begin with ERROR as well.
    """
    message = re.sub(r" \[[A-Z_]+\]\Z", "", text.removeprefix("INVALID_ARGUMENT: "))
    return RuleVerdict(message, "", None)
