"""
Render strings, data and trees as Backstage's scaffolder does, or fail.

The public names are here. The modules below are layered ``refusals < javascript < operands <
filters, methods < builtins, lexer < grammar < parser, operations < engine < tree_files < tree``.
Importing this package imports Jinja2 (about 50 ms), so commands import it only
when they need it. No I/O.
"""

from softwaretemplates.render.engine import (
    Renderable,
    compile_template,
    render_data,
    used_backstage_filters,
)
from softwaretemplates.render.javascript import (
    UNDEFINED,
    Undefined,
    Unforeseen,
    Unknown,
    Value,
    truthy,
)
from softwaretemplates.render.lexer import BACKSTAGE, COOKIECUTTER, Delimiters
from softwaretemplates.render.refusals import (
    LimitError,
    Position,
    RenderError,
    UndefinedValueError,
    UnsupportedError,
)
from softwaretemplates.render.tree import (
    FileOutcome,
    SkeletonFile,
    Tree,
    TreeOptions,
    check_tree,
    judge_tree,
    lint_tree,
    render_tree,
    treat,
)
from softwaretemplates.render.tree_files import check_path

__all__ = [
    "BACKSTAGE",
    "COOKIECUTTER",
    "UNDEFINED",
    "Delimiters",
    "FileOutcome",
    "LimitError",
    "Position",
    "RenderError",
    "Renderable",
    "SkeletonFile",
    "Tree",
    "TreeOptions",
    "Undefined",
    "UndefinedValueError",
    "Unforeseen",
    "Unknown",
    "UnsupportedError",
    "Value",
    "check_path",
    "check_tree",
    "compile_template",
    "judge_tree",
    "lint_tree",
    "render_data",
    "render_tree",
    "treat",
    "truthy",
    "used_backstage_filters",
]
