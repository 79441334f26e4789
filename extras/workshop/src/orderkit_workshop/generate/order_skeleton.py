"""
The skeleton of a kit's orders: the content of an order's repository.

The XR has one field per line, so that people can edit it. Every value passes through ``dump`` and
arrives unchanged, whatever it looks like. A field without a value, or whose condition is not met,
is left out.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from kubeschema.pruning import PRESERVE
from orderkit.core.kit.change_forms import LEASE, changes_of, title_of
from orderkit.core.kit.form_values import prefix_of
from orderkit.core.kit.generated_mark import template_comment
from orderkit.core.kit.kit_file_parts import When
from orderkit.core.kit.literals import quoted
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import FieldShape, KitField, KitFields, fields_of
from orderkit.core.order.order_file import MANIFESTS
from yamlfiles.format_versions import API_VERSION
from yamlfiles.yaml11 import dump_block

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LITERALS = frozenset({"true", "false", "none", "null", "True", "False", "None"})
"""Names that an engine reads as values, even after a dot."""
_TAG = re.compile(r"\$\{\{|\{%|\{#|#\}")
SERVICE = "__ORDERKIT_SERVICE_URL__"
"""Address of the service; baked when the pack is published."""
SPEC, YAML = "values.spec", "values.yaml"
"""Where a skeleton finds the values of the XR's fields, by the XRD's names; see `yaml_roots`."""


def skeleton(kit: Kit) -> dict[PurePosixPath, bytes]:
    """Return the files of a kit's skeleton."""
    fields = fields_of(kit)
    root = PurePosixPath("templates", kit.name, "skeleton")
    manifest = manifest_path(kit)
    texts = {
        "catalog-info.yaml": _catalog_info(kit),
        "README.md": _readme(kit, manifest),
        ".orderkit/order.yaml": _order(kit, fields),
        str(manifest): _manifest(kit, fields),
    }
    mark = template_comment(kit.name)
    return {root / path: (mark + text).encode() for path, text in texts.items()}


def manifest_path(kit: Kit) -> PurePosixPath:
    """Return the path of the XR in an order's repository."""
    return PurePosixPath(MANIFESTS, f"{kit.kind.kind.lower()}.yaml")


def member(of: str, name: str) -> str:
    """Return the expression for a key of a map."""
    if _IDENTIFIER.match(name) and name not in _LITERALS:
        return f"{of}.{name}"
    return f"{of}[{quoted(name)}]"


def plain(text: str) -> str:
    """Return a text escaped so that a template prints it unchanged."""
    return _TAG.sub(lambda match: f'${{{{ "{match[0]}" }}}}', text)


@functools.cache
def _key(name: str) -> str:
    """Return a key as YAML, quoted if a reader would not read this text otherwise."""
    line: str = dump_block({name: 0}).removesuffix(": 0\n")
    return plain(line if "\n" not in line and not line.startswith("?") else json.dumps(name))


def _manifest(kit: Kit, fields: KitFields) -> str:
    name = "values.order"
    if kit.xr_name != "order":
        name = _expression(kit.xr_name)
    head = (
        "---\n# This file is the order: what `main` has of it is delivered.\n"
        f"apiVersion: {kit.kind.api_version}\nkind: {kit.kind.kind}\n"
        f"metadata:\n  name: {_dumped(name)}\n{_namespace(kit)}"
    )
    return head + block("spec", SPEC, fields.top, "")


def _namespace(kit: Kit) -> str:
    parts = [
        operand
        for text, path in kit.namespace_parts
        for operand in (quoted(text) if text else "", _expression(path) if path else "")
        if operand
    ]
    expression = " ~ ".join(parts)
    return f"  namespace: {_dumped(f'({expression})')}\n" if parts else ""


def _order(kit: Kit, fields: KitFields) -> str:
    lease: dict[str, Any] = {
        key: value for key, value in (("duration", kit.lease.default),
                                      ("maximum", kit.lease.maximum)) if value
    }  # fmt: skip
    lease_text = "lease: {}\n"
    if kit.lease.default:
        lease_text = "lease:\n" + "".join(f"    {key}: {value}\n" for key, value in lease.items())
    entered_fields = [field for field in fields.top if not field.hidden]
    return (
        "---\n# The order as it was placed. Written once; what holds now stands in manifests/.\n"
        f"apiVersion: {API_VERSION}\nkind: Order\n"
        "metadata:\n  name: ${{ values.order | dump }}\n"
        f"spec:\n  kit: {kit.name}\n"
        "  team: ${{ values.team | dump }}\n"
        "  packCommit: ${{ values.pack_commit | dump }}\n"
        "  requester: ${{ values.requester | dump }}\n"
        f"  {lease_text}" + block("ordered", SPEC, entered_fields, "  ")
    )


def _catalog_info(kit: Kit) -> str:
    tags = ["orderkit", *(tag for tag in (kit.name, *kit.tags) if tag != "orderkit")]
    tag_lines = "".join(f"  {line}\n" for line in dump_block({"tags": tags}).splitlines())
    described = quoted(f"{' '.join(kit.title.split())} of team ")
    return (
        "---\napiVersion: backstage.io/v1alpha1\nkind: Component\nmetadata:\n"
        "  name: ${{ values.order | dump }}\n"
        f"  description: ${{{{ ({described} ~ values.team) | dump }}}}\n"
        "  annotations:\n"
        "    argocd/app-name: ${{ values.order | dump }}\n"
        "    orderkit.dev/order: ${{ values.order | dump }}\n"
        f"{plain(tag_lines)}"
        f"{_links(kit)}"
        "spec:\n  type: order\n  lifecycle: production\n"
        '  owner: ${{ ("group:default/" ~ values.team) | dump }}\n'
    )


def _links(kit: Kit) -> str:
    """Link the order's page to the forms of its changes, filled in with the current values."""
    forms = [(title_of(change), f"/changes/{change.name}/form") for change in changes_of(kit)]
    text = "  links:\n"
    if kit.lease.is_declared and kit.lease.extend.times != 0:
        forms.append((f"Extend the {kit.title}", f"/changes/{LEASE}/form"))
    for title, path in [*forms, (f"End the {kit.title}", "/end/form")]:
        address = f'"{SERVICE}/v1/orders/" ~ values.order ~ "{path}"'
        titled = dump_block({"title": " ".join(title.split())}, width=10_000)
        text += f"    - url: ${{{{ ({address}) | dump }}}}\n      {plain(titled)}"
    return text


def _readme(kit: Kit, manifest: PurePosixPath) -> str:
    return (
        "# ${{ values.order }}\n\n"
        f"The {plain(' '.join(kit.title.split()))} of team ${{{{ values.team }}}}, "
        "ordered with Orderkit.\n\n"
        "| File | What it is |\n|---|---|\n"
        f"| `{manifest}` | the order: what `main` has of it is delivered. "
        "Change it here, or with `orderkit change` |\n"
        "| `catalog-info.yaml` | how the portal's catalog shows it |\n"
        "| `.orderkit/order.yaml` | the order as it was placed; never edited |\n\n"
        "```sh\n"
        "orderkit status ${{ values.order }}   # how far it is, and what is wrong\n"
        "orderkit trace ${{ values.order }}    # what was made for it\n"
        "orderkit destroy ${{ values.order }}  # end it; do not just delete the files\n"
        "```\n"
    )


def block(key: str, at: str, fields: Sequence[KitField], indent: str) -> str:
    """
    Return the lines of a map whose entries may all be missing; it is ``{}`` then.

    Args:
        at: The expression for the entries' values.
    """
    return f"{indent}{_key(key)}:{_entries(at, fields, indent, 1)}\n"


def _entries(at: str, fields: Sequence[KitField], indent: str, depth: int) -> str:
    """Return the text after a map's colon."""
    written_fields = [field for field in fields if _is_written(field)]
    lines = "".join(_entry(field, at, fields, f"{indent}  ", depth) for field in written_fields)
    if any(_is_always_there(field) for field in written_fields):
        return lines
    nothing = " and ".join(
        f"not ({_given_condition(field, at, fields)})" for field in written_fields
    )
    return f"{{% if {nothing} %}} {{}}{{% endif %}}{lines}" if written_fields else " {}"


def _is_written(field: KitField) -> bool:
    """Return whether the XR may have the field."""
    # the server fills in fields that nobody can enter
    entered = field.asked or field.hidden is not None or (field.required and not field.unseen)
    return entered or _has_yaml(field)


def _has_yaml(field: KitField) -> bool:
    """Return whether the field, or one inside it, is entered as YAML."""
    return any(inner.in_yaml and not inner.unseen for inner in field.walk())


def _member(at: str, field: KitField) -> str:
    """Return the expression for a field's value; `at` is that of the object that has it."""
    if field.in_yaml and "[]" not in field.path:
        return _path(YAML, field.path)
    return member(at, field.name)


def _is_always_there(field: KitField) -> bool:
    """Return whether every value of the form has the field."""
    return field.hidden is not None or (field.required and field.hints.when is None)


def _given_condition(field: KitField, at: str, beside: Sequence[KitField]) -> str:
    """Return the condition under which the XR has the field."""
    value = _member(at, field)
    if field.shape is FieldShape.EMPTY and not field.in_yaml:
        return "true"
    conditions = [f"{value} is defined"]
    if field.may_be_empty or (_has_yaml(field) and not field.in_yaml):
        conditions = [_entered_condition(field, value)]
    when = field.hints.when
    if when:
        conditions.append(_when_condition(when, at, beside))
    return " and ".join(conditions)


def _entered_condition(field: KitField, value: str) -> str:
    """Return the condition under which a field has a value."""
    match field.shape:
        case FieldShape.OBJECT if not field.schema.get(PRESERVE):
            inner = [
                _entered_condition(nested, _member(value, nested))
                for nested in field.fields
                if nested.visible or _has_yaml(nested)
            ]
            if not field.may_be_empty:
                inner.insert(0, f"{value} is defined")
            return f"({' or '.join(inner)})" if inner else "false"
        case FieldShape.LIST | FieldShape.MAP | FieldShape.FREE | FieldShape.OBJECT if (
            not field.in_yaml
        ):
            return f"({value} is defined and ({value} | length) !== 0)"
    return f"{value} is defined"


def _when_condition(when: When, at: str, beside: Sequence[KitField]) -> str:
    question = next(field for field in beside if field.path == when.field)
    answer = member(at, question.name)
    answers = [f"{answer} === {_literal(value)}" for value in when.values]
    holds = answers[0] if len(answers) == 1 else f"({' or '.join(answers)})"
    before = question.hints.when  # a hidden answer does not count
    return f"{_when_condition(before, at, beside)} and {holds}" if before else holds


def _literal(value: str | float | bool) -> str:  # noqa: FBT001 - an answer, no switch
    if isinstance(value, str):
        return quoted(value)
    return json.dumps(value)


def _entry(field: KitField, at: str, beside: Sequence[KitField], indent: str, depth: int) -> str:
    """Return a field's lines, beginning with a line break."""
    value = _value(field, _member(at, field), indent, depth)
    text = f"\n{indent}{_key(field.name)}:{value}"
    if _is_always_there(field) or (field.shape is FieldShape.EMPTY and not field.in_yaml):
        return text
    return f"\n{{%- if {_given_condition(field, at, beside)} %}}{text}\n{{%- endif %}}"


def _value(field: KitField, value: str, indent: str, depth: int) -> str:
    """Return the text after a key or a dash; `indent` is that of the key or dash."""
    match field.shape:
        case FieldShape.EMPTY:
            return " {}"
        case FieldShape.OBJECT if not field.schema.get(PRESERVE):
            return _entries(value, field.fields, indent, depth)
        case FieldShape.OBJECT | FieldShape.FREE:
            return f" ${{{{ {value} | dump(2) | indent({len(indent)}) }}}}"
        case FieldShape.LIST | FieldShape.MAP if field.item is not None:
            return _loop(field, field.item, value, f"{indent}  ", depth)
    # A baked number has no quotes: its guard pattern has checked it.
    bare = field.hidden is not None and field.shape is not FieldShape.TEXT
    prefix = prefix_of(field.hints)
    if prefix:
        value = f"({value} | replace({quoted(prefix)}, {quoted('')}))"
    return f" ${{{{ {value} }}}}" if bare else f" {_dumped(value)}"


def _loop(field: KitField, item: KitField, value: str, indent: str, depth: int) -> str:
    """Return the entries of a list or map, one per line; ``[]`` or ``{}`` if there are none."""
    entry_name = f"entry{depth}"
    if field.shape is FieldShape.LIST:
        empty, names = "[]", entry_name
        line = f"{indent}-{_item(item, entry_name, indent, depth + 1)}"
    else:
        empty, names = "{}", f"key{depth}, {entry_name}"
        line = f"{indent}{_dumped(f'key{depth}')}:{_value(item, entry_name, indent, depth + 1)}"
    nothing = f"{{% if ({value} | length) === 0 %}} {empty}{{% endif %}}"
    if field.name and field.may_be_empty:
        nothing = ""
    return f"{nothing}\n{{%- for {names} in {value} %}}\n{line}\n{{%- endfor %}}"


def _item(item: KitField, value: str, indent: str, depth: int) -> str:
    """Return a list item. A map's first line follows the dash if the map cannot be empty."""
    if item.shape is not FieldShape.OBJECT or item.schema.get(PRESERVE):
        return _value(item, value, indent, depth)
    fields = sorted(item.fields, key=lambda field: not _is_always_there(field))
    lines = _entries(value, fields, indent, depth)
    start = f"\n{indent}  "
    return f" {lines.removeprefix(start)}" if lines.startswith(start) else lines


def _expression(path: str) -> str:
    return _path(SPEC, path)


def _path(value: str, path: str) -> str:
    for name in path.split("."):
        value = member(value, name)
    return value


def _dumped(value: str) -> str:
    return f"${{{{ {value} | dump }}}}"
