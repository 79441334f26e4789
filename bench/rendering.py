"""
Rendering a small repository of six files: in process, with files, and committed to git.

The peer is cookiecutter's API on the same files in its own form, in the same run. Beside it
stands the reference pack's garage skeleton.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from bench.figure import Figure, median_s, timed_s
from orderkit.adapters.packfolder import reference_pack
from orderkit.core.render import SkeletonFile, render_tree

Files = Mapping[PurePosixPath, SkeletonFile]

VALUES = {
    "order": "garage-ae86",
    "team_name": "ae86",
    "stage": "stage2",
    "requester": "user:default/bench",
    "pack_commit": "c" * 40,
}
SKELETON = "templates/garage/skeleton"
SIX = {
    "catalog-info.yaml": (
        "apiVersion: backstage.io/v1alpha1\nkind: Component\nmetadata:\n"
        "  name: ${{ values.order | dump }}\n  description: ${{ values.stage | dump }}\n"
        "spec:\n  type: service\n  lifecycle: experimental\n"
        "  owner: ${{ values.requester | dump }}\n"
    ),
    "manifests/xr.yaml": (
        "apiVersion: example.org/v1\nkind: XGarage\nmetadata:\n  name: ${{ values.order | dump }}\n"
        "spec:\n  teamName: ${{ values.team_name | dump }}\n  stage: ${{ values.stage | dump }}\n"
    ),
    "README.md": (
        "# ${{ values.order }}\n\n{% if values.stage == 'stage2' %}Second stage.\n{% else %}"
        "Another stage.\n{% endif %}\n"
        "Ordered by ${{ values.requester }} for ${{ values.team_name }}.\n"
    ),
    "src/${{ values.order }}.py": (
        "NAME = ${{ values.order | dump }}\n\n\ndef main():\n    print(NAME)\n"
    ),
    ".github/workflows/ci.yaml": (
        "on: push\njobs:\n  test:\n    runs-on: x\n    steps:\n"
        "{% for step in ['lint', 'test', 'build'] %}      - run: make ${{ step }}\n{% endfor %}"
    ),
    ".gitignore": "*.pyc\n.cache/\n",
}
REPOSITORIES = 1000


def figures() -> Iterator[Figure]:
    six = {PurePosixPath(name): SkeletonFile(text.encode()) for name, text in SIX.items()}
    ours_s = median_s(lambda: render_tree(six, VALUES), runs=300)
    with tempfile.TemporaryDirectory(dir=_memory()) as name:
        peer_s = _cookiecutter_s(SIX, Path(name))
        files_s = median_s(_writing(six, Path(name) / "ours"), runs=100)
        many_s = timed_s(lambda: _repositories(six, Path(name) / "git"))
    cookiecutter = "cookiecutter API (it also writes the files)"
    yield Figure(
        "render.six", ours_s * 1000, "ms", cookiecutter, peer_s * 1000, peer_s / ours_s,
        aim=">= 70", aim_of="ratio",
    )  # fmt: skip
    yield Figure("render.six.value", ours_s * 1000, "ms", aim="<= 0.1")
    yield Figure(
        "render.six.files", files_s * 1000, "ms", cookiecutter, peer_s * 1000, peer_s / files_s,
        aim="<= 0.3",
    )  # fmt: skip
    yield Figure("render.repositories", many_s, "s for 1,000", aim="<= 3")
    garage = _garage()
    garage_s = median_s(lambda: render_tree(garage, VALUES), runs=300)
    yield Figure("render.garage", garage_s * 1000, "ms")


def _memory() -> str | None:
    """Return a folder in memory, so that the disk of the machine does not count."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a file system


def _garage() -> Files:
    skeleton = reference_pack() / SKELETON
    return {
        PurePosixPath(path.relative_to(skeleton)): SkeletonFile(path.read_bytes())
        for path in sorted(skeleton.rglob("*"))
        if path.is_file()
    }


def _writing(files: Files, folder: Path) -> Callable[[], None]:
    def run() -> None:
        for path, file in render_tree(files, VALUES).items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.data)

    return run


def _repositories(files: Files, folder: Path) -> None:
    """Render a repository for each of many teams; commit each to a bare repository."""
    import pygit2

    author = pygit2.Signature("bench", "bench@example.org")
    for number in range(REPOSITORIES):
        rendered = render_tree(files, {**VALUES, "order": f"garage-{number}"})
        repository = pygit2.init_repository(str(folder / f"{number}.git"), bare=True)
        index = pygit2.Index()
        for path, file in rendered.items():
            blob = repository.create_blob(file.data)
            index.add(pygit2.IndexEntry(str(path), blob, pygit2.enums.FileMode.BLOB))
        tree = index.write_tree(repository)
        repository.create_commit("refs/heads/main", author, author, "Order", tree, [])


def _cookiecutter_s(files: Mapping[str, str], folder: Path) -> float:
    """Time cookiecutter on the same files, its expressions in cookiecutter's own form."""
    from cookiecutter.main import cookiecutter

    template = folder / "template"
    root = template / "{{cookiecutter.order}}"
    for name, source in files.items():
        place = root / _translated(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(_translated(source))
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
    found = median_s(run, runs=20)
    shutil.rmtree(folder / "out")
    return found


def _translated(text: str) -> str:
    plain = text.replace("values.", "cookiecutter.").replace("${{", "{{")
    return plain.replace("| dump", "| tojson")
