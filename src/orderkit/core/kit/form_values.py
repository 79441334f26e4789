"""
Values of a form that differ from those of the order: picked names, and settings as a text of YAML.

A picker of the catalog returns a reference (``resource:default/houses``). With ``value: name`` in
kit.yaml the XR holds ``houses``: forms accept both, the prefix is removed on the way to the XR, and
the form of a live order shows the reference again. This works only for entities of the namespace
``default``; the form's pattern refuses references to other namespaces.

The fields of ``yamlFields`` of kit.yaml are taken together as one text of YAML. The text is the
only input that people structure themselves, so it is read here and nowhere else: it may set these
fields of ``spec`` and nothing else, with values that the XRD accepts. Templates get the parsed
values from the service and write them field by field, as they write all others. Names are those of
the form: fields of an unfolded group stand at the top.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ground.errors import InvalidInputError
from ground.objects.values import ABSENT, value_at
from ground.suggestions import did_you_mean
from kubeschema.field_paths import value_at as value_of_finding
from kubeschema.validate import Validator
from orderkit.core.kit.kit_file_parts import FieldPath, Hints
from orderkit.core.kit.literals import YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import KitField, fields_of
from yamlfiles import yaml11
from yamlfiles.manifests import ManifestError, ManifestLimits, parse_documents


def prefix_of(hints: Hints | None) -> str:
    """Return the prefix of the field's references; empty if the field holds whole references."""
    return hints.picker.prefix if hints and hints.picker else ""


def pattern_with(prefix: str, pattern: str) -> str | None:
    """Return a pattern that also accepts references; None if that cannot be exact."""
    plain = pattern.startswith("^") and pattern.endswith("$") and "|" not in pattern
    return f"^({prefix})?{pattern[1:]}" if plain else None


def name_alone(kit: Kit, path: FieldPath, value: Any) -> Any:
    """Return the value of the XR for an answer of the form."""
    prefix = prefix_of(kit.fields.get(path))
    return value.removeprefix(prefix) if prefix and isinstance(value, str) else value


def names_alone(kit: Kit, spec: Mapping[str, Any], at: FieldPath = "") -> dict[str, Any]:
    """Return answers, by the XRD's field names, as the XR holds them."""
    stripped = {}
    for name, value in spec.items():
        path = f"{at}.{name}" if at else name
        inner = isinstance(value, Mapping)
        stripped[name] = names_alone(kit, value, path) if inner else name_alone(kit, path, value)
    return stripped


def as_reference(hints: Hints, value: Any) -> Any:
    """Return a value of the XR as a picker shows it."""
    prefix = prefix_of(hints)
    plain = prefix and isinstance(value, str) and value and ":" not in value
    return f"{prefix}{value}" if plain else value


SAFE_MAX = 2**53 - 1
"""The largest integer that JavaScript represents exactly."""

TEXT_MAX = 20_000
"""Characters of the text."""
TITLE = "More settings (YAML)"
_LIMITS = ManifestLimits(size_bytes=4 * TEXT_MAX, depth=32, events=5_000, aliases=0)
_NAMES_MAX, _ROWS_MAX = 24, 14
_DOCS = "__ORDERKIT_FORGE_URL__/__ORDERKIT_PACK_REPOSITORY__/src/branch/main/docs/kits"


def yaml_roots(kit: Kit, paths: Sequence[FieldPath] | None = None) -> tuple[KitField, ...]:
    """Return the outermost fields that are entered as YAML; only those below `paths`, if given."""
    roots = (field for top in fields_of(kit).top for field in _roots(top))
    return tuple(
        field
        for field in roots
        if paths is None or any(field.path == p or field.path.startswith(f"{p}.") for p in paths)
    )


def _roots(field: KitField) -> Iterator[KitField]:
    if field.in_yaml:
        yield field
    else:
        for inner in field.fields:
            yield from _roots(inner)


def yaml_property(kit: Kit, roots: Sequence[KitField]) -> dict[str, Any]:
    """Return the form's property for the text."""
    names = [f"`{kit.parameter(field.path)}`" for field in roots]
    listed = ", ".join(names[:_NAMES_MAX])
    if len(names) > _NAMES_MAX:
        listed += f" and {len(names) - _NAMES_MAX} more"
    example = roots[0]
    while example.fields:
        example = example.fields[0]
    steps = kit.parameter(example.path).split(".")
    lines = [f"{'  ' * at}{name}:" for at, name in enumerate(steps)]
    return {
        "title": TITLE,
        "description": f"Rarely needed; leave it empty to get the defaults. Fields: {listed}. "
        f"[What they mean]({_DOCS}/{kit.name}.md).",
        "type": "string",
        "maxLength": TEXT_MAX,
        "ui:widget": "textarea",
        "ui:options": {"rows": min(3 + 2 * len(roots), _ROWS_MAX)},
        "ui:placeholder": "\n".join(lines) + " ...",
    }


def settings_text(kit: Kit, spec: Mapping[str, Any], roots: Sequence[KitField]) -> str:
    """Return the text that sets these fields as `spec` has them; empty if it has none."""
    settings: dict[str, Any] = {}
    for field in roots:
        value = value_at(spec, tuple(field.path.split(".")))
        if value is not ABSENT:
            _put(settings, kit.parameter(field.path), value)
    return yaml11.dump_block(settings) if settings else ""


def read_settings(kit: Kit, text: object, roots: Sequence[KitField]) -> dict[str, Any]:
    """
    Return the part of ``spec`` that a text sets.

    Args:
        roots: The fields that it may set (`yaml_roots`).

    Raises:
        InvalidInputError: It is not YAML, sets anything but these fields, or gives one a value that
            the XRD refuses. The field is named.
    """
    document = _document(text)
    settings: dict[str, Any] = {}
    by_parameter = {kit.parameter(field.path): field for field in roots}
    for parameter, value in _chosen(kit, document, by_parameter, ""):
        _check_values(parameter, value)
        _put(settings, by_parameter[parameter].path, value)
    _check_schema(kit, settings, roots)
    return settings


def merged(spec: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return `spec` with the fields of `settings` added, map by map."""
    both = dict(spec)
    for name, value in settings.items():
        old = both.get(name)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            both[name] = merged(old, value)
        else:
            both[name] = value
    return both


def _document(text: object) -> Mapping[str, Any]:
    if not isinstance(text, str) or len(text) > TEXT_MAX:
        raise _error(text, f"is not a text of at most {TEXT_MAX} characters")
    try:
        documents = parse_documents(YAML_PARAMETER, text.encode(), limits=_LIMITS)
    except UnicodeEncodeError as error:
        raise _error(text, "has half a character") from error
    except ManifestError as error:
        where = f"line {error.line}: " if error.line else ""
        raise _error(
            text, f"is not usable YAML: {where}{error.reason}",
            "one 'name: value' a line, indented with blanks; anchors and tags are not allowed",
        ) from error  # fmt: skip
    if len(documents) > 1:
        raise _error(text, "has more than one document", "leave out the line '---'")
    document = documents[0][0] if documents else None
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise _error(text, "is not a map of fields", "write 'name: value', one a line")
    return document


def _chosen(
    kit: Kit, values: Mapping[str, Any], allowed: Mapping[str, KitField], at: str
) -> Iterator[tuple[str, Any]]:
    """Yield each allowed field with its value."""
    for name, value in values.items():
        parameter = f"{at}.{name}" if at else name
        if parameter in allowed:
            yield parameter, value
        elif any(other.startswith(f"{parameter}.") for other in allowed):
            if not isinstance(value, Mapping):
                raise InvalidInputError(parameter, value, "is not a group of fields",
                                        hint=f"indent its fields below '{name}:'")  # fmt: skip
            yield from _chosen(kit, value, allowed, parameter)
        else:
            raise _unknown(kit, parameter, value, allowed)


def _unknown(
    kit: Kit, parameter: str, value: Any, allowed: Mapping[str, KitField]
) -> InvalidInputError:
    fields = {kit.parameter(f.path): f for f in fields_of(kit).walk() if f.path != kit.unfold}
    field = fields.get(parameter)
    if field is None:
        hint = did_you_mean(parameter, allowed, f"fields: {', '.join(allowed)}")
        return InvalidInputError(parameter, value, f"cannot be set in {YAML_PARAMETER}", hint=hint)
    if field.secret:
        return InvalidInputError(
            parameter, "***", "looks like a secret, and orders are plain text in Git",
            hint="put it into a Secret and refer to that",
        )  # fmt: skip
    if field.hidden:
        return InvalidInputError(parameter, value, "is set by the platform", hint="leave it out")
    return InvalidInputError(
        parameter, value, f"cannot be set in {YAML_PARAMETER}",
        hint="the form has a field of its own for it" if field.visible else "leave it out",
    )  # fmt: skip


def _check_values(path: str, value: Any) -> None:
    """Refuse what does not survive on its way through the portal."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _check_text(path, name)
            if name == "__proto__":
                raise InvalidInputError(path, name, "is not a name that a portal keeps")
            _check_values(f"{path}.{name}", inner)
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            _check_values(f"{path}[{number}]", entry)
    elif isinstance(value, str):
        _check_text(path, value)
    elif isinstance(value, int | float) and not -SAFE_MAX <= value <= SAFE_MAX:
        raise InvalidInputError(path, value, f"is not between -{SAFE_MAX} and {SAFE_MAX}")


def _check_text(path: str, text: str) -> None:
    for character in text:
        if not character.isprintable() and character not in "\n\t" and not character.isspace():
            raise InvalidInputError(path, text, "has a control character")
        if character in "\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029":
            raise InvalidInputError(
                path, text, "has a line break that some YAML readers do not know",
                hint="write a normal line break or a blank",
            )  # fmt: skip


def _check_schema(kit: Kit, settings: Mapping[str, Any], roots: Sequence[KitField]) -> None:
    """Refuse values that the XRD refuses; what else the order lacks is not judged here."""
    xr = {
        "apiVersion": kit.kind.api_version,
        "kind": kit.kind.kind,
        "metadata": {"name": kit.name},
        "spec": settings,
    }
    paths = [f"spec.{field.path}" for field in roots]
    for finding in Validator(kit.xrd).check(xr).findings:
        place = finding.path if finding.place is None else finding.place
        if any(place == p or place.startswith((f"{p}.", f"{p}[")) for p in paths):
            path = finding.path.removeprefix("spec.")
            raise InvalidInputError(
                kit.parameter(path), value_of_finding(xr, finding.path),
                f"is refused: {finding.message}",
                hint=finding.hint,
            )  # fmt: skip


def _put(target: dict[str, Any], path: str, value: Any) -> None:
    *outer, name = path.split(".")
    for step in outer:
        target = target.setdefault(step, {})
    target[name] = value


def _error(text: object, rule: str, hint: str = "") -> InvalidInputError:
    return InvalidInputError(YAML_PARAMETER, text, rule, hint=hint)
