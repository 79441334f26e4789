"""What others made is pinned, and what CI runs is not text from a branch's name."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from ground.errors import InvalidInputError
from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.core.kit.pack import read_pack
from orderkit.core.platform.baking import bake

ROOT = Path(__file__).parents[2]
PACKS = (ROOT, ROOT / "packs" / "agents")
MANIFEST = b'{"schemaVersion": 2}'
DIGEST = f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"


@pytest.mark.parametrize(
    "file", sorted(path for path in ROOT.glob("**/pyproject.toml") if ".venv" not in path.parts)
)
def test_every_build_system_is_pinned_to_one_release(file: Path) -> None:
    (line,) = re.findall(r"^requires = \[(.*)\]$", file.read_text(), re.MULTILINE)

    assert all(re.fullmatch(r'"[a-z]+==[0-9.]+"', one) for one in line.split(", ")), line


def test_no_shell_line_of_generated_ci_holds_an_expression() -> None:
    texts = [
        re.sub("{% (end)?raw %}", "", workflow.read_text())
        for workflow in (ROOT / "skeletons" / "pack").glob("*/.github/workflows/*.yaml")
    ]
    jobs = [job for text in texts for job in yaml.safe_load(text)["jobs"].values()]
    steps = [step for job in jobs for step in job["steps"]]

    assert any("github.base_ref" in str(step.get("env")) for step in steps)
    assert [step["run"] for step in steps if "${{" in step.get("run", "")] == []
    assert all(re.search(r"@[0-9a-f]{40}$", step["uses"]) for step in steps if "uses" in step)


@pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.name)
def test_no_kit_of_ours_may_bind_any_role(pack: Path) -> None:
    roles = [
        role
        for path in pack.glob("gitops/**/*.yaml")
        for role in yaml.safe_load_all(path.read_text())
        if role and role["kind"] in {"Role", "ClusterRole"}
    ]

    binding = [rule for role in roles for rule in role.get("rules", ()) if "bind" in rule["verbs"]]
    assert all(rule.get("resourceNames") for rule in binding)


@pytest.fixture
def registry() -> Iterator[str]:
    """A registry that asks for a token, and has one manifest for everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/token"):
                self.answer(200, {}, b'{"token": "pull"}')
            elif self.headers.get("Authorization") != "Bearer pull":
                challenge = f'Bearer realm="{url}/token",service="r",scope="pull"'
                self.answer(401, {"WWW-Authenticate": challenge})
            else:
                self.answer(200, {"Docker-Content-Digest": DIGEST}, MANIFEST)

        def answer(self, code: int, headers: dict[str, str], body: bytes = b"") -> None:
            self.send_response(code)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield url
    server.shutdown()
    thread.join()
    server.server_close()


def digests(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "orderkit", "kit", "digests", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_digests_are_written_where_releases_are_pinned(registry: str, tmp_path: Path) -> None:
    package = "package: __ORDERKIT_REGISTRY__/others/lab:__ORDERKIT_VERSION_LAB__\n"
    (tmp_path / "gitops").mkdir()
    (tmp_path / "gitops" / "functions.yaml").write_text(package)
    pack = tmp_path / "pack.yaml"
    pack.write_text("spec:\n  versions:\n    crossplane: 2.3.4\n    lab: v1.2.3\n")
    assert digests("--check", "--pack", str(tmp_path)).returncode == 10

    written = digests("--registry", registry, "--pack", str(tmp_path))

    assert written.returncode == 0, written.stderr
    assert pack.read_text().endswith(f"crossplane: 2.3.4\n    lab: v1.2.3@{DIGEST}\n")
    assert digests("--check", "--pack", str(tmp_path)).returncode == 0


def test_without_an_answer_no_digest_is_written(tmp_path: Path) -> None:
    file = tmp_path / "Containerfile"
    file.write_text("FROM lab/base:1\n")

    done = digests("--registry", "127.0.0.1:9", str(file))

    assert (done.returncode, file.read_text()) == (1, "FROM lab/base:1\n")
    assert "no registry answers at 127.0.0.1:9" in done.stderr


def test_base_images_get_their_digest(registry: str, tmp_path: Path) -> None:
    file = tmp_path / "Containerfile"
    file.write_text("FROM lab/base:1 AS build\nRUN true\nFROM lab/base:1\n")

    assert digests("--registry", registry, str(file)).returncode == 0

    pinned = f"FROM lab/base:1@{DIGEST}"
    assert file.read_text() == f"{pinned} AS build\nRUN true\n{pinned}\n"


CONTAINERFILES = (
    "Containerfile",
    "function/Containerfile",
    "packs/agents/Containerfile",
)


@pytest.mark.parametrize("name", CONTAINERFILES)
def test_our_images_are_built_on_a_digest_only(name: str, registry: str, tmp_path: Path) -> None:
    """Nothing is built without the required argument: the name of the base is incomplete."""
    text = (ROOT / name).read_text()
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert len(bases) == 2
    assert all(base.endswith("@${BASE_DIGEST}") for base in bases)
    assert "\nARG BASE_DIGEST\n" in text

    file = tmp_path / "Containerfile"
    file.write_text(text.replace("python:3.11-slim-bookworm", "lab/base:1"))
    assert digests("--check", str(file)).returncode == 10
    assert digests("--registry", registry, str(file)).returncode == 0
    assert f"\nARG BASE_DIGEST={DIGEST}\n" in file.read_text()
    assert digests("--check", str(file)).returncode == 0


def test_no_containerfile_is_left_out() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "*Containerfile*", "*Dockerfile*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert tuple(tracked.stdout.split()) == CONTAINERFILES


def test_a_pack_may_pin_digests_and_nothing_else_with_an_at_sign() -> None:
    files = read_folder(ROOT)
    key = next(path for path in files if str(path) == "pack.yaml")
    pinned = files[key].replace(b"v0.7.0", f"v0.7.0@{DIGEST}".encode())

    assert read_pack({**files, key: pinned}).versions["function-auto-ready"].endswith(DIGEST)
    assert bake({}, {"VERSION_LAB": f"v1.2.3@{DIGEST}"}) == {}
    with pytest.raises(InvalidInputError):
        bake({}, {"VERSION_LAB": "v1.2.3@evil"})
