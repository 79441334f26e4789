"""
The pages of an order form and the fields on each.

kit.yaml's ``pages`` decide. Without them a short form has one page; a longer one begins with what
is required, continues with the groups of the XRD, and ends with advanced fields. Fields that depend
on each other's answers stay together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from orderkit.core.kit.field_names import label_of
from orderkit.core.kit.kit_file_parts import Page
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import FieldShape, KitField, KitFields

DEFAULT_PAGE, OPTIONS_PAGE, ADVANCED_PAGE = "Order", "Options", "Advanced settings"
PAGE_MAX = 12
"""Values that a person is asked for on one page, if groups allow it."""
_PAGES_MAX = 8
"""The portal shows the titles of all pages in one row."""
_GROUP_MIN = 4
"""Smaller groups stand among the single fields."""

PlacedFields = list[tuple[Page, list[KitField]]]
_Unit = list[KitField]
"""A field, and the fields that are shown for some of its answers."""


def form_layout(kit: Kit, fields: KitFields) -> PlacedFields:
    """Return the pages of the order form; the last one may be without fields."""
    visible = [field for field in fields.form if field.asked]
    if kit.pages:
        placed = _author_pages(kit, visible)
    else:
        plain = [field for field in visible if not field.advanced]
        plain.sort(key=lambda field: (field.order is None, not field.required))
        placed = [(Page(DEFAULT_PAGE, ()), plain)]
        if _weight(plain) > PAGE_MAX:
            placed = _split(_units(plain))
    placed_paths = {field.path for _, page_fields in placed for field in page_fields}
    advanced = [field for field in visible if field.path not in placed_paths]
    if advanced or any(field.in_yaml for field in fields.walk()):
        placed.append((Page(ADVANCED_PAGE, ()), advanced))
    return placed


def _author_pages(kit: Kit, visible: Sequence[KitField]) -> PlacedFields:
    """Return the pages of kit.yaml; plain fields that they do not name are on the last one."""
    by_path = {field.path: field for field in visible}
    paths = {path for page in kit.pages for path in page.fields}
    placed = [(page, [by_path[path] for path in page.fields]) for page in kit.pages]
    placed[-1][1].extend(f for f in visible if f.path not in paths and not f.advanced)
    return placed


def _units(fields: Sequence[KitField]) -> list[_Unit]:
    by_path = {field.path: field for field in fields}
    units: dict[str, _Unit] = {}
    for field in fields:
        question, visited = field, {field.path}
        while (when := question.hints.when) and when.field in by_path.keys() - visited:
            question = by_path[when.field]
            visited.add(question.path)
        units.setdefault(question.path, []).append(field)
    return list(units.values())


def _split(units: Sequence[_Unit]) -> PlacedFields:
    page_max = max(PAGE_MAX, -(-sum(map(_weight, units)) // _PAGES_MAX))
    groups = [unit for unit in units if _weight(unit) >= _GROUP_MIN and not _is_single(unit[0])]
    single = [unit for unit in units if unit not in groups]
    required = [unit for unit in single if any(field.required for field in unit)]
    optional = [unit for unit in single if unit not in required]
    if _weight(field for unit in single for field in unit) <= page_max:
        required, optional = single, []
    groups.sort(key=lambda unit: not unit[0].required)
    return [
        *_numbered(DEFAULT_PAGE, _packed(required, page_max) or [[]]),
        *_numbered(OPTIONS_PAGE, _packed(optional, page_max)),
        *((Page(_titles(page), ()), page) for page in _packed(groups, page_max)),
    ]


def _is_single(field: KitField) -> bool:
    return field.shape not in (FieldShape.OBJECT, FieldShape.LIST, FieldShape.MAP)


def _packed(units: Iterable[_Unit], page_max: int) -> list[list[KitField]]:
    pages: list[list[KitField]] = []
    for unit in units:
        spare = page_max - _weight(pages[-1]) if pages else 0
        # A form of many pages has larger ones; half a group more keeps their number down.
        if spare >= _weight(unit) / (1 if page_max == PAGE_MAX else 2):
            pages[-1].extend(unit)
        else:
            pages.append(list(unit))
    return pages


def _numbered(title: str, pages: Sequence[list[KitField]]) -> Iterator[tuple[Page, list[KitField]]]:
    for number, page in enumerate(pages, start=1):
        yield Page(title if number == 1 else f"{title} {number}", ()), page


def _titles(fields: Sequence[KitField]) -> str:
    """Return the title of a page of groups."""
    titles = [field.hints.title or label_of(field.name) for field in fields]
    return " and ".join(titles) if len(titles) < 3 else f"{titles[0]}, {titles[1]} and more"  # noqa: PLR2004 - as many as fit


def _weight(fields: Iterable[KitField]) -> int:
    return sum(field.weight for field in fields)
