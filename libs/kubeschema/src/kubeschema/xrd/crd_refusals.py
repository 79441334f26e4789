"""
Report why the API server would refuse the CRD of an XRD, in its words.

Crossplane accepts such an XRD all the same and reports the refusal only in an event. CEL rules are
compiled where the CEL library has a build; their cost is not estimated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ground.objects.kube_objects import Manifest, metadata
from kubeschema.xrd.derived_crds import claim_crd_for, crd_for
from kubeschema.xrd.xrd_error import BrokenXrdError

_PART = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_DNS_1123 = re.compile(rf"{_PART}(\.{_PART})*")
_DNS_1123_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'example.com', regex used for"
    " validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_DNS_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
    " alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123',"
    " regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def problems(xrd: Manifest) -> tuple[str, ...]:
    """
    Return one line per fault, ``path: message``; empty if the server would accept the CRD.

    Claims add only the fault that `claim_problem` returns: their CRD has the same schemas.
    """
    try:
        crd = crd_for(xrd)
    except BrokenXrdError as error:
        return (str(error),)
    return (*_name_problems(crd), *_version_problems(crd), *_schema_problems(crd))


def claim_problem(xrd: Manifest) -> BrokenXrdError | None:
    """Return why Crossplane makes no CRD for the claims of an XRD whose XRs are valid."""
    try:
        claim_crd_for(xrd)
    except BrokenXrdError as error:
        return error
    return None


def _name_problems(crd: Manifest) -> Iterator[str]:
    name, spec = metadata(crd)["name"], crd["spec"]
    if name != f"{spec['names'].get('plural')}.{spec['group']}":
        yield (f'metadata.name: Invalid value: "{name}": must be spec.names.plural+"."+spec.group')
    if not _DNS_1123.fullmatch(spec["group"]):
        yield f'spec.group: Invalid value: "{spec["group"]}": {_DNS_1123_RULE}'
    for field in ("plural", "kind"):
        yield from _label_problem(f"spec.names.{field}", spec["names"].get(field), mixed_case=True)


def _label_problem(path: str, value: object, *, mixed_case: bool = False) -> Iterator[str]:
    """Say, as the API server does, why a name is no DNS label; it becomes a part of many texts."""
    if not value:
        yield f"{path}: Required value"
    elif not _DNS_1035.fullmatch(str(value).lower() if mixed_case else str(value)):
        rule = "may have mixed case, but should otherwise match: " if mixed_case else ""
        yield f'{path}: Invalid value: "{value}": {rule}{_DNS_1035_RULE}'


def _version_problems(crd: Manifest) -> Iterator[str]:
    versions = crd["spec"]["versions"]
    if sum(version["storage"] for version in versions) != 1:
        yield (
            "spec.versions: Invalid value: must have exactly one version marked as storage version"
        )
    for index, version in enumerate(versions):
        if "deprecationWarning" in version and not version.get("deprecated"):
            yield (
                f"spec.versions[{index}].deprecationWarning: Invalid value: "
                f'"{version["deprecationWarning"]}": can only be set for deprecated versions'
            )
    names = [version.get("name") for version in versions]
    for index, name in enumerate(names):
        yield from _label_problem(f"spec.versions[{index}].name", name)
        if name in names[:index]:
            yield f'spec.versions[{index}].name: Duplicate value: "{name}"'


def _schema_problems(crd: Manifest) -> Iterator[str]:
    from kubeschema.cel import rules_of
    from kubeschema.structural.structural_rules import check_schema  # lazy: jsonschema

    for index, version in enumerate(crd["spec"]["versions"]):
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        schema = version["schema"]["openAPIV3Schema"]
        faults = check_schema(schema, at=path)
        yield from faults
        if not faults:
            yield from (
                f"{field_path}: {message}"
                for field_path, message in rules_of(schema).faults(at=path)
            )
