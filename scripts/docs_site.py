"""
Build the site of the documentation: one folder for each version, with a search that works offline.

``make docs`` builds the pages of this checkout and fails at the first link that leads nowhere.
``make docs ARGS=--releases`` adds a folder for each tag ``vX.Y.Z``. The site is in
.cache/docs/site: open its index.html in a browser, or copy the folder to any web server.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONFIGURATION = ROOT / "docs/site"
SITE = ROOT / ".cache/docs/site"
DEVELOPMENT = "next"
"""The folder of the checkout's own pages."""
_CHOICE = """\
const versions = document.getElementById("versions");
for (const name of {names}) {{
  versions.add(new Option(name, name, false, name === versions.dataset.version));
}}
versions.addEventListener("change", () => {{
  location.href = `${{versions.dataset.root}}../${{versions.value}}/index.html`;
}});
"""
_START = '<!doctype html><meta http-equiv="refresh" content="0; url={newest}/index.html">\n'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", action="store_true", help="build the tags vX.Y.Z as well")
    options = parser.parse_args()
    failed = build(ROOT, DEVELOPMENT, strict=True)
    if options.releases:
        for tag in git("tag", "--list", "v[0-9]*", "--sort=-version:refname").split():
            failed += build_release(tag)
    write_choice()
    print(f"{SITE / 'index.html'}")
    return int(failed > 0)


def build(source: Path, version: str, *, strict: bool) -> int:
    """Build one version; 1 if it failed, or if a link of the checkout leads nowhere."""
    command = [sys.executable, "-m", "sphinx", "--quiet", "--conf-dir", str(CONFIGURATION)]
    command += ["--define", f"version={version}", "--define", f"release={version}"]
    command += ["--doctree-dir", str(SITE.parent / "read" / version)]
    if strict:  # a changed heading breaks links of unchanged pages, so all are read again
        command += ["--fail-on-warning", "--fresh-env"]
    done = subprocess.run([*command, str(source), str(SITE / version)], check=False)
    return int(done.returncode != 0)


def build_release(tag: str) -> int:
    """Build the pages of a tag with the configuration of this checkout."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "pages.tar")
        git("archive", f"--output={archive}", tag)
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        return build(Path(folder), tag, strict=False)


def write_choice() -> None:
    """List the versions that the site has, the checkout's first, then the newest release."""
    names = [path.name for path in SITE.iterdir() if (path / "index.html").exists()]
    released = git("tag", "--list", "v[0-9]*", "--sort=-version:refname").split()
    kept = [name for name in (DEVELOPMENT, *released) if name in names]
    for name in set(names) - set(kept):
        shutil.rmtree(SITE / name)
    (SITE / "versions.js").write_text(_CHOICE.format(names=json.dumps(kept)))
    newest = (kept[1:] or kept)[0]
    (SITE / "index.html").write_text(_START.format(newest=newest))


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
