"""
Compile one ``x-kubernetes-validations`` entry.

`compile_rule` reports in the server's words why the server would refuse a rule. A rule that is
valid but cannot be evaluated exactly has a `gap`. What a rule might cost with the largest values
that its schema allows is not checked.

Kubernetes compares sets and keyed lists regardless of order, and CEL does not (`comparing`). If a
rule only compares them with each other, they are sorted first and the result is correct. A rule
that concatenates them, compares them with a literal list or uses positions is not evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubeschema.cel.environments import Judge, RuleVerdict, run_source, runner
from kubeschema.cel.evaluation import Activation, Program
from kubeschema.cel.syntax_tree import ExpressionNode, element_type, message_name, read_tree
from kubeschema.cel.type_shapes import CelType

_EQUALITY = frozenset({"_==_", "_!=_"})
_HARMLESS = _EQUALITY | frozenset(
    {
        *("_&&_", "_||_", "!_", "_?_:_", "@not_strictly_false", "size", "_<_", "_<=_", "_>_"),
        *("_>=_", "@in", "startsWith", "endsWith", "contains", "matches", "_-_", "_*_", "_/_"),
        *("_%_", "-_", "hasValue", "value", "orValue", "_?._", "string", "int", "double"),
    }
)
_OF_ELEMENTS = frozenset(
    {"distinct", "lastIndexOf", "sets.contains", "sets.equivalent", "sets.intersects"}
)


@dataclass(frozen=True, slots=True)
class Comparing:
    """Whether the rule needs sorted lists, or why it cannot be evaluated."""

    canonical: bool
    gap: str


def comparing(tree: ExpressionNode, shape: CelType) -> Comparing:
    """Return how to evaluate a rule over a type that contains unordered lists."""
    calls = [node for node in tree.walk() if node.kind == "call"]
    compared = [call for call in calls if call.name in _EQUALITY and _any_collection(call)]
    if any(_joins(call, shape) for call in calls):
        return Comparing(canonical=False, gap="concatenates or searches lists without order")
    if not compared:
        return Comparing(canonical=False, gap="")
    ordered = any(_needs_order(call) for call in calls)
    has_computed_side = any(
        child.kind not in {"select", "ident"} for call in compared for child in call.children
    )
    if ordered or has_computed_side or _mixes(shape):
        return Comparing(canonical=False, gap="compares a list without order with another list")
    return Comparing(canonical=True, gap="")


def _any_collection(call: ExpressionNode) -> bool:
    return any(_holds_list(child) for child in call.children)


def _holds_list(node: ExpressionNode) -> bool:
    """Return whether the node is a list, an object that may contain one, or of unknown type."""
    return node.is_dynamic or element_type(node.type) is not None or _is_object(node)


def _is_object(node: ExpressionNode) -> bool:
    return message_name(node.type) is not None


def _joins(call: ExpressionNode, shape: CelType) -> bool:
    """Return whether a call concatenates lists, or compares elements that are lists or objects."""
    if call.name in _OF_ELEMENTS:
        inner = element_type(call.children[0].type)
        return inner is None or _holds_list(ExpressionNode("", "", inner, ()))
    if call.name == "_+_":
        lists = [child for child in call.children if element_type(child.type) is not None]
        dynamic = any(child.is_dynamic for child in call.children)
        return (dynamic or any(_is_given(child) for child in lists)) and shape.unordered()
    return call.name == "@in" and _holds_list(call.children[0])


def _is_given(node: ExpressionNode) -> bool:
    """
    Return whether the list comes from the object.

    ``map`` and ``filter`` accumulate lists too.
    """
    return node.kind == "select" or (node.kind == "ident" and not node.name.startswith("@"))


def _needs_order(call: ExpressionNode) -> bool:
    """Return whether the result of a call may depend on list order: positions, joining, sorting."""
    lists = [child for child in call.children if element_type(child.type) is not None]
    if call.name == "_[_]":
        return call.children[0] in lists or call.children[0].is_dynamic
    dynamic = any(child.is_dynamic for child in call.children)
    return call.name not in _HARMLESS and bool(lists or dynamic)


def _mixes(shape: CelType) -> bool:
    """Return whether the type has both ordered and unordered lists, which compare differently."""
    are_atomic = {shape_.list_type == "atomic" for shape_ in _lists(shape)}
    return len(are_atomic) > 1


def _lists(shape: CelType) -> Iterator[CelType]:
    if shape.kind == "list":
        yield shape
    inner = [child for _, child in shape.fields.values()]
    for child in (*inner, *([shape.items] if shape.items else ())):
        yield from _lists(child)


RULES = "x-kubernetes-validations"
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
HERE = "\0"
"""Placeholder in a fault for the path of the schema in its CRD."""
_UNDECLARED_OLD = "undeclared reference to 'oldSelf"


@dataclass(frozen=True, slots=True, eq=False)
class CelRule:
    """A valid rule."""

    source: str
    message: str
    """The message when the rule fails and has no ``messageExpression``."""
    label: str
    """The rule's name in an evaluation error: its message, otherwise its expression."""
    reason: str
    field_path: str
    uses_old: bool
    optional_old: bool
    program: Program | None
    """The compiled expression; None if there is a gap."""
    on_lists: Program | None
    """
    The same expression compiled with ``indexOf`` on lists. Tried when `program`, which has it on
    strings only, reports that the function is missing.
    """
    message_program: Program | None
    canonical: bool
    """Sort unordered lists before evaluating."""
    gap: str
    """Why the rule cannot be evaluated; empty if it can."""


@dataclass(frozen=True, slots=True)
class RuleFault:
    """Why the server would refuse a rule: the field at fault and the message."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Context:
    """The place of a rule: schema, CEL type of ``self``, whether old values can be found."""

    schema: Mapping[str, Any]
    shape: CelType
    judge: Judge
    correlatable: bool
    """False inside a list whose elements have no identity."""
    uncorrelatable_at: str = ""


def compile_rule(entry: Mapping[str, Any], context: Context) -> CelRule | list[RuleFault]:
    """Return the compiled rule, or the reasons why the server would refuse it."""
    source = str(entry.get("rule") or "")
    faults = _plain_faults(entry, source, context)
    if not source.strip():
        return [RuleFault("rule", "Required value: rule is not specified"), *faults]
    verdict = context.judge.judge(source)
    # Compiled without oldSelf first: the error that it is undeclared shows a transition rule.
    uses_old = _UNDECLARED_OLD in verdict.fault
    optional = bool(entry.get("optionalOldSelf"))
    if uses_old:
        verdict = context.judge.judge(source, old="optional" if optional else "plain")
    faults += _rule_faults(entry, verdict, context, uses_old=uses_old)
    faults += _message_faults(entry, context, optional=optional)
    if faults:
        return faults
    return _rule(entry, verdict, context, uses_old=uses_old)


def _plain_faults(entry: Mapping[str, Any], source: str, context: Context) -> list[RuleFault]:
    faults = []
    message = entry.get("message")
    if message is not None and not message.strip() and message:
        faults.append(
            RuleFault(
                "message", f"Invalid value: {_quoted(message)}: must be non-empty if specified"
            )
        )
    elif "\n" in (message or "").strip():
        faults.append(
            RuleFault("message", f"Invalid value: {_quoted(message)}: must not contain line breaks")
        )
    elif "\n" in source.strip() and not message:
        sentence = "Required value: message must be specified if rule contains line breaks"
        faults.append(RuleFault("message", sentence))
    reason = entry.get("reason")
    if reason is not None and reason not in _REASONS:
        reasons = ", ".join(_quoted(name) for name in _REASONS)
        sentence = f"Unsupported value: {_quoted(reason)}: supported values: {reasons}"
        faults.append(RuleFault("reason", sentence))
    path = entry.get("fieldPath")
    if path and field_steps(path, context.schema) is None:
        faults.append(
            RuleFault("fieldPath", f"Invalid value: {_quoted(path)}: must be a valid path")
        )
    return faults


def field_steps(path: str, schema: Mapping[str, Any]) -> list[str] | None:
    """Return the steps of a ``fieldPath`` such as ``.a['b-c']``; None if it matches no field."""
    steps: list[str] = []
    remaining = path
    while remaining:
        if remaining.startswith("['"):
            name, end, remaining = remaining[2:].partition("']")
        elif remaining.startswith("."):
            cut = next((i for i, c in enumerate(remaining[1:], 1) if c in ".["), len(remaining))
            name, end, remaining = remaining[1:cut], "]", remaining[cut:]
        else:
            return None
        properties = schema.get("properties") or {}
        extra = schema.get("additionalProperties")
        below = properties.get(name, extra)
        if not end or not isinstance(below, Mapping):
            return None
        schema = below
        steps.append(name)
    return steps


def _rule_faults(
    entry: Mapping[str, Any], verdict: RuleVerdict, context: Context, *, uses_old: bool
) -> list[RuleFault]:
    lead = f"Invalid value: {_rule_text(entry)}"
    if verdict.fault:
        message = f"{lead}: compilation failed: {verdict.fault}"
        return [RuleFault("rule", message), *_idle_option(entry)]
    if not uses_old and (idle := _idle_option(entry)):
        return idle
    if verdict.result not in {"", "bool", "dyn", "BOOL", "DYN"}:
        return [RuleFault("rule", f"{lead}: cel expression must evaluate to a bool")]
    if uses_old and not context.correlatable:
        message = f"Invalid value: {_quoted(entry['rule'])}: oldSelf cannot be used on the "
        path = f"{HERE}{context.uncorrelatable_at}"
        message += f"uncorrelatable portion of the schema within {path}"
        return [RuleFault("rule", message)]
    tree = read_tree(verdict.serialised) if verdict.serialised else None
    fault = _literal_fault(tree) if tree else ""
    return [RuleFault("rule", f"{lead}: compilation failed: {fault}")] if fault else []


def _idle_option(entry: Mapping[str, Any]) -> list[RuleFault]:
    """
    Report an unneeded ``optionalOldSelf``.

    The server also reports it if the rule does not compile.
    """
    if entry.get("optionalOldSelf") is None:
        return []
    message = (
        f"Invalid value: {json.dumps(entry['optionalOldSelf'])}: may not be set if oldSelf is "
    )
    return [RuleFault("optionalOldSelf", f"{message}not used in rule")]


def _message_faults(
    entry: Mapping[str, Any], context: Context, *, optional: bool
) -> list[RuleFault]:
    expression = entry.get("messageExpression")
    if not expression:
        return []
    verdict = context.judge.judge(expression, old="optional" if optional else "plain")
    lead = f"Invalid value: {_rule_text(entry)}"
    if verdict.fault:
        message = f"{lead}: messageExpression compilation failed: {verdict.fault}"
        return [RuleFault("messageExpression", message)]
    if verdict.result not in {"", "string", "STRING"}:
        return [
            RuleFault("messageExpression", f"{lead}: messageExpression must evaluate to a string")
        ]
    return []


def _literal_fault(tree: ExpressionNode) -> str:
    """Find a constant that the server evaluates while compiling and that is invalid."""
    for node in tree.walk():
        if node.kind != "call" or not node.children or node.children[-1].kind != "constant":
            continue
        constant = node.children[-1].name
        quoted = json.dumps(constant)
        parsers = {
            "matches": f"''.matches({quoted})",
            "find": f"''.matches({quoted})",
            "findAll": f"''.matches({quoted})",
            "duration": f"duration({quoted})",
            "timestamp": f"timestamp({quoted})",
        }.get(node.name)
        if parsers and node.children[-1].type and constant and _fails(parsers):
            return f"ERROR: <input>:1:1: invalid {node.name} argument"
    return _mixed_list(tree)


def _fails(expression: str) -> bool:
    return bool(Program(runner().compile(expression)).evaluate(Activation({})).error)


def _mixed_list(tree: ExpressionNode) -> str:
    """
    Find a list literal of mixed types.

    The server allows these only as arguments of ``format``.
    """
    if tree.kind == "call" and tree.name == "format":
        return _mixed_list(tree.children[0])
    if tree.kind == "list":
        types = {child.type for child in tree.children if not child.is_dynamic}
        if len(types) > 1:
            return "ERROR: <input>:1:1: expected elements of one type in a list"
    return next((fault for child in tree.children if (fault := _mixed_list(child))), "")


def _rule(
    entry: Mapping[str, Any], verdict: RuleVerdict, context: Context, *, uses_old: bool
) -> CelRule:
    source, optional = entry["rule"], bool(entry.get("optionalOldSelf"))
    program, on_lists, gap = _programs(run_source(source, optional_old=optional))
    how = Comparing(canonical=False, gap="")
    if program is not None and context.shape.unordered():
        how = comparing(read_tree(verdict.serialised or program.serialize()), context.shape)
    expression = entry.get("messageExpression")
    message_program = None
    if expression:
        message_program, _, _ = _programs(run_source(expression, optional_old=optional))
    return CelRule(
        source=source,
        label=(entry.get("message") or "").strip() or source.strip(),
        message=(entry.get("message") or "").strip() or f"failed rule: {source.strip()}",
        reason=entry.get("reason") or "FieldValueInvalid",
        field_path=entry.get("fieldPath") or "",
        uses_old=uses_old,
        optional_old=optional,
        program=None if gap or how.gap else program,
        on_lists=on_lists,
        message_program=message_program,
        canonical=how.canonical,
        gap=gap or how.gap,
    )


def _programs(source: str) -> tuple[Program | None, Program | None, str]:
    """
    Compile for evaluation.

    Return the program, the one for list positions, or why there is none.
    """
    programs, why = [], ""
    for positions in (False, True) if "ndexOf" in source else (False,):
        try:
            programs.append(Program(runner(positions=positions).compile(source)))
        except RuntimeError as error:
            why = why or str(error)
    if programs:
        return programs[0], programs[1] if len(programs) > 1 else None, ""
    first = why.partition("ERROR: ")[2].partition("\n")[0].partition(": ")[2]
    return None, None, f"uses what Orderkit's CEL library does not offer: {first or why}"


def _quoted(text: object) -> str:
    return json.dumps(text, ensure_ascii=False)


def _rule_text(entry: Mapping[str, Any]) -> str:
    """Write the rule as the server's messages show it."""
    fields = {
        "Rule": entry.get("rule") or "",
        "Message": entry.get("message") or "",
        "MessageExpression": entry.get("messageExpression") or "",
        "Reason": entry.get("reason"),
        "FieldPath": entry.get("fieldPath") or "",
        "OptionalOldSelf": entry.get("optionalOldSelf"),
    }
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    for char in "&<>":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text
