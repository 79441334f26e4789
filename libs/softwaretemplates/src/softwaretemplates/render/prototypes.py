"""The members that every JavaScript object of a kind has. These names are never data."""

from __future__ import annotations


def _names(table: str) -> frozenset[str]:
    return frozenset(table.split())


OBJECT = _names(
    "__proto__ __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ constructor "
    "hasOwnProperty isPrototypeOf propertyIsEnumerable prototype toLocaleString toString "
    "valueOf"
)
TEXT = OBJECT | _names(
    "anchor at big blink bold charAt charCodeAt codePointAt concat endsWith fixed fontcolor "
    "fontsize includes indexOf isWellFormed italics lastIndexOf link localeCompare match "
    "matchAll normalize padEnd padStart repeat replace replaceAll search slice small split "
    "startsWith strike sub substr substring sup toLocaleLowerCase toLocaleUpperCase toLowerCase "
    "toUpperCase toWellFormed trim trimEnd trimLeft trimRight trimStart"
)
LIST = OBJECT | _names(
    "at concat copyWithin entries every fill filter find findIndex findLast findLastIndex flat "
    "flatMap forEach includes indexOf join keys lastIndexOf map pop push reduce reduceRight "
    "reverse shift slice some sort splice toReversed toSorted toSpliced unshift values "
    "with"
)
NUMBER = OBJECT | {"toExponential", "toFixed", "toPrecision"}
