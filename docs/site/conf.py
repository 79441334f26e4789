"""
How Sphinx makes a site of the Markdown pages; ``scripts/docs_site.py`` calls it.

The pages stay as the forge shows them: the source folder is the repository, so every link between
pages is checked as it stands. The index of docs/README.md becomes the navigation.
"""

from __future__ import annotations

import re

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.highlighting import lexers

project = "Orderkit"
author = "the authors of Orderkit"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/README"
include_patterns = [
    "*.md",
    "docs/**.md",
    "[!.]*/README.md",
    "gitops/**.md",
    "libs/*/README.md",
    "extras/*/README.md",
    "packs/**.md",
    "tests/kits/README.md",
    "portal/plugins/**README.md",
]
exclude_patterns = [".*", "**/node_modules", "**/skeleton", "skeletons", "build", "dist"]
suppress_warnings = [
    "toc.not_included"
]  # tests/unit/test_doc_links.py wants every page in the index
myst_heading_anchors = 6  # named as the forge names them
html_theme = "furo"
html_title = "Orderkit"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
templates_path = ["layout"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_additional_pages = {"index": "start.html"}
lexers["mermaid"] = TextLexer()  # the forge draws these three; the site shows their text

_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^\| \[[^]]+\]\(([^)#]+)\.md\)", re.MULTILINE)


def _with_navigation(_app: Sphinx, name: str, source: list[str]) -> None:
    """Add a hidden table of contents for each section of the index."""
    if name != root_doc:
        return
    parts = _SECTION.split(source[0])
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        pages = "\n".join(_ENTRY.findall(text))
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the navigation."""
    app.connect("source-read", _with_navigation)
    return {"parallel_read_safe": True}
