"""Rendering the garage skeleton in process, against cookiecutter's API on the same files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from bench.figure import Figure, median_s
from orderkit.adapters.packfolder import reference_pack
from orderkit.core.render import SkeletonFile, render_tree

VALUES = {
    "order": "garage-ae86",
    "team_name": "ae86",
    "stage": "stage2",
    "requester": "user:default/bench",
    "pack_commit": "c" * 40,
}
SKELETON = "templates/garage/skeleton"


def figures() -> Iterator[Figure]:
    skeleton = reference_pack() / SKELETON
    files = {
        PurePosixPath(path.relative_to(skeleton)): SkeletonFile(path.read_bytes())
        for path in sorted(skeleton.rglob("*"))
        if path.is_file()
    }
    ours_s = median_s(lambda: render_tree(files, VALUES), runs=300)
    with tempfile.TemporaryDirectory() as name:
        peer_s = _cookiecutter_s(skeleton, Path(name))
    yield Figure(
        "render.garage",
        ours_s * 1000,
        "ms",
        peer="cookiecutter API (it also writes the files)",
        peer_value=peer_s * 1000,
        ratio=peer_s / ours_s,
        aim=">= 50",
        aim_of="ratio",
    )


def _cookiecutter_s(skeleton: Path, folder: Path) -> float:
    """Time cookiecutter on the same skeleton, its expressions in cookiecutter's own form."""
    import json

    from cookiecutter.main import cookiecutter

    template = folder / "template"
    root = template / "{{cookiecutter.order}}"
    shutil.copytree(skeleton, root)
    for path in root.rglob("*"):
        if path.is_file():
            text = path.read_text().replace("values.", "cookiecutter.")
            path.write_text(text.replace("${{", "{{").replace("| dump", "| tojson"))
    (template / "cookiecutter.json").write_text(json.dumps(VALUES))

    def run() -> None:
        cookiecutter(
            str(template),
            no_input=True,
            overwrite_if_exists=True,
            output_dir=str(folder / "out"),
            default_config=True,
        )

    run()
    return median_s(run, runs=20)
