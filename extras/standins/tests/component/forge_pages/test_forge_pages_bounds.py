"""Pages of what nobody planned for: hostile text, large files, odd objects."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from forgedesk import OWNER, Desk

from ground.names import RepoId
from orderkit_standins.forge.pages import shown_commits
from orderkit_standins.forge.pages.repository_pages import FILE_MAX_BYTES, LINES_MAX
from orderkit_standins.markdown_html import LINE_MAX_CHARS

SCRIPT = "<script>alert(1)</script>"
OVERRIDE = "\u202eexe.txt"


def test_hostile_text_is_text_everywhere(desk: Desk) -> None:
    repo = desk.repo(description=f'{SCRIPT} "><img src=x onerror=alert(1)>')
    name = "<script>alert(2)<_script>"
    desk.write(repo, {name: SCRIPT, OVERRIDE: "a\u2066b\x07\n", "README.md": SCRIPT}, SCRIPT)
    head = desk.write(repo, {name: "{{ 7 * 7 }}"}, f"{SCRIPT}{OVERRIDE}", f'user:"><b>{OVERRIDE}')

    paths = ["", "/commits/branch/main", f"/commit/{head}", "/branches"]
    paths += [f"/src/branch/main/{quote(each)}" for each in (name, OVERRIDE)]
    paths += [f"/commits/branch/main/{quote(name)}"]
    shown = {path: desk.page(f"/{repo}{path}") for path in paths}
    shown["/"] = desk.page("/")

    for path in ("", "/commits/branch/main", f"/commit/{head}", "/"):
        assert SCRIPT in shown[path].text, path
    for path, page in shown.items():
        assert "\u202e" not in page.text + page.title, path
        assert "\x07" not in page.text, path
    assert "U+202E" in shown[""].hidden_chars
    assert "U+202E" in shown[f"/commit/{head}"].hidden_chars
    assert "{{ 7 * 7 }}" in shown[paths[4]].text
    strange = shown[paths[5]]
    assert strange.hidden_chars.count("U+2066") == 1
    assert "U+0007" in strange.hidden_chars
    assert "change the order" in strange.text


def test_what_was_asked_for_is_escaped_too(desk: Desk) -> None:
    for path in (f"/?q={quote(SCRIPT)}", f"/?q={quote(OVERRIDE)}"):
        shown = desk.page(path)
        assert "No repository" in shown.text
        assert "\u202e" not in shown.text + shown.title
    desk.page(f"/{quote(SCRIPT, safe='')}/{quote(OVERRIDE)}", status=404)


def test_a_long_file_is_shown_page_by_page(desk: Desk) -> None:
    repo = desk.repo()
    desk.write(repo, {"long.txt": "".join(f"line {n}\n" for n in range(1, 10_001))})

    first, second = (desk.page(f"/{repo}/src/branch/main/long.txt?page={n}") for n in (1, 2))

    assert f"Lines 1 to {LINES_MAX:,} of 10,000." in first.text
    assert f"L{LINES_MAX}" in first.ids
    assert f"L{LINES_MAX + 1}" not in first.ids
    assert "?page=2" in first.links
    assert "L10000" in second.ids
    assert "?page=3" not in second.links


def test_a_long_line_is_cut_with_a_note(desk: Desk) -> None:
    repo = desk.repo()
    head = desk.write(repo, {"long.txt": "x" * 50_000 + "\nshort\n"})

    for path in ("/src/branch/main/long.txt", f"/commit/{head}"):
        shown = desk.page(f"/{repo}{path}")
        assert shown.text.count("x" * LINE_MAX_CHARS) == 1
        assert f"{50_000 - LINE_MAX_CHARS:,} characters more" in shown.text
        assert "short" in shown.text


def test_files_that_are_no_text_or_too_large_have_a_note(desk: Desk) -> None:
    repo = desk.repo()
    files = {
        "a.bin": bytes(range(256)),
        "b.txt": b"x\n" * (FILE_MAX_BYTES // 2 + 1),
        "empty": b"",
        "latin": b"caf\xe9\n",
    }
    head = desk.write(repo, files)

    assert "A binary file" in desk.file(repo, "a.bin").text
    assert "Too large" in desk.file(repo, "b.txt").text
    assert "An empty file" in desk.file(repo, "empty").text
    assert "caf\ufffd" in desk.file(repo, "latin").text
    commit = desk.page(f"/{repo}/commit/{head}").text
    for note in ("Binary file, not shown.", "Too large to compare here.", "An empty file."):
        assert note in commit
    raw = desk.get(f"/{repo}/raw/branch/main/b.txt")
    assert raw.content == files["b.txt"]


def test_changes_of_many_files_and_many_lines_are_bounded(desk: Desk) -> None:
    repo = desk.repo()
    many = "".join(f"{n}\n" for n in range(shown_commits.LINES_PER_FILE_MAX + 1))
    files = {f"f{n:03}.txt": f"{n}\n" for n in range(shown_commits.FILES_MAX + 20)}
    head = desk.write(repo, {"0.txt": many, **files})

    shown = desk.page(f"/{repo}/commit/{head}")

    assert f"{shown_commits.FILES_MAX + 21} files changed" in shown.text
    assert f"in the first {shown_commits.FILES_MAX} files, which are shown" in shown.text
    assert "Too many lines to show here." in shown.text
    assert len([level for level, _ in shown.headings if level == 3]) == shown_commits.FILES_MAX


def test_renames_line_ends_and_modes_are_told(desk: Desk, push: Callable[..., str]) -> None:
    repo = desk.repo()
    desk.write(repo, {"old.txt": "same\n" * 9, "dos.txt": "a\r\nb\r\n", "run.sh": "#!/bin/sh\n"})
    head = push(
        repo,
        "git mv old.txt new.txt && chmod +x run.sh && printf 'a\\r\\nc\\r\\n' > dos.txt",
    )

    shown = desk.page(f"/{repo}/commit/{head}")

    assert "renamed from old.txt" in shown.text
    assert "mode 100644 → 100755" in shown.text
    assert "Same content, another mode." in shown.text
    assert "changed, CRLF line ends" in shown.text
    assert shown.hidden_chars == []
    assert "executable" in desk.file(repo, "run.sh").text
    assert "CRLF line ends" in desk.file(repo, "dos.txt").text


def test_links_submodules_and_merges_are_told(desk: Desk, push: Callable[..., str]) -> None:
    repo = desk.repo()
    other = "1" * 40
    desk.write(repo, {"a.txt": "1\n"})
    head = push(
        repo,
        "ln -s ../../etc/passwd link && git add link"
        f" && git update-index --add --cacheinfo 160000,{other},part"
        " && git commit -q -m Odd && git checkout -q -b side"
        " && git commit -q --allow-empty -m side"
        " && git checkout -q main && git merge -q --no-ff -m Merge side",
    )

    link, part = desk.file(repo, "link"), desk.file(repo, "part")

    assert "symbolic link" in link.text
    assert "../../etc/passwd" in link.text
    assert "root:" not in link.text
    assert f"at commit {other}" in part.text
    shown = desk.page(f"/{repo}")
    assert "link symlink" in shown.text
    assert "part submodule" in shown.text
    assert "Parents" in desk.page(f"/{repo}/commit/{head}").text


def test_commits_that_no_tool_of_ours_writes_are_shown(desk: Desk) -> None:
    repo = desk.repo()
    tip = desk.write(repo, {"a": "1"})
    path = desk.forge.repository_path(repo)
    assert path is not None
    tree = git(path, "rev-parse", f"{tip}^{{tree}}")
    raw = (
        f"tree {tree}\nparent {tip}\n".encode()
        + b"author A\xff <> 99999999999999 +0000\ncommitter B <b> 1 +0100\n"
        + b"encoding nonsense\n\nhi \xff there\n"
    )
    odd = git(path, "hash-object", "-t", "commit", "-w", "--stdin", "--literally", data=raw)
    git(path, "update-ref", "refs/heads/main", odd)
    git(path, "update-ref", "refs/tags/of-a-tree", tree)

    for where in ("", "/commits/branch/main", f"/commit/{odd}", "/branches"):
        desk.page(f"/{repo}{where}")
    assert desk.api("GET", f"/repos/{repo}/git/commits/{odd}") is None
    assert "hi \ufffd there" in desk.page(f"/{repo}/commit/{odd}").h1
    desk.page(f"/{repo}/src/tag/of-a-tree", status=404)


@pytest.mark.parametrize(
    "path",
    [
        "/..%2f..%2fforge.sqlite",
        "/src/branch/main/..%2f..%2fconfig",
        "/raw/branch/main/..%2f..%2fconfig",
        "/raw/commit/HEAD/a",
        "/src/commit/main",
        "/src/commit/--help",
        "/src/branch/main%00",
        "/commit/--output=x",
        "/commit/HEAD.diff",
        "/commit/" + "0" * 40 + ".patch",
    ],
)
def test_no_address_leads_out_of_the_repository(desk: Desk, path: str) -> None:
    repo = desk.repo()
    desk.write(repo, {"a": "1"})

    assert desk.get(f"/{repo}{path}").status_code == 404


@pytest.mark.parametrize("page", ["0", "-1", "x", "1e9", "9" * 30, ""])
def test_page_numbers_of_any_kind_give_a_page(desk: Desk, page: str) -> None:
    repo = desk.repo()
    desk.write(repo, {"a": "1"})

    for path in (f"/{repo}/commits/branch/main", f"/{repo}/src/branch/main/a", "/"):
        desk.page(f"{path}?page={page}", auth=OWNER)


def test_a_repository_that_vanishes_meanwhile_does_not_break_the_list(desk: Desk) -> None:
    repo, other = desk.repo(), desk.repo()
    path = desk.forge.repository_path(repo)
    assert path is not None
    aside = path.with_suffix(".aside")
    path.rename(aside)
    try:
        assert f"/{other}" in desk.page(f"/?q={other.owner[:4]}").links
        assert "No commits yet" in desk.page(f"/{repo.owner}").text
    finally:
        aside.rename(path)


def git(path: Path, *arguments: str, data: bytes = b"") -> str:
    done = subprocess.run(
        ["git", "--git-dir", str(path), *arguments], input=data, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


@pytest.fixture
def push(desk: Desk, tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs a shell line in a clone, commits and pushes all."""

    def run(repo: RepoId, line: str) -> str:
        url = f"{desk.url}/{repo}.git".replace("://", f"://{':'.join(OWNER)}@")
        script = (
            "set -e; export HOME=$PWD GIT_CONFIG_NOSYSTEM=1"
            " GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b;"
            f"git clone -q {url} copy; cd copy; {line};"
            "git add -A . ':!part'; git diff --cached --quiet || git commit -q -m Push;"
            "git push -q origin main; git rev-parse HEAD"
        )
        done = subprocess.run(
            ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
