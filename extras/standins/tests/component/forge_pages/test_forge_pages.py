"""What a person finds who looks around on the embedded forge with a browser."""

from __future__ import annotations

from forgedesk import GUEST, OWNER, Desk


def test_the_first_page_lists_what_may_be_seen_by_owner(desk: Desk) -> None:
    public, hidden = desk.repo(description="Winter tyres"), desk.repo(private=True)
    desk.write(public, {"a": "1"})

    shown = desk.page("/")
    assert f"/{public}" in shown.links
    assert (2, public.owner) in shown.headings
    assert "Winter tyres" in shown.text
    assert f"/{hidden}" not in shown.links
    assert hidden.owner not in shown.text

    assert f"/{hidden}" not in desk.page("/", auth=GUEST).links
    assert f"/{hidden}" in desk.page("/", auth=OWNER).links


def test_search_finds_parts_of_names_in_any_case(desk: Desk) -> None:
    one, other = desk.repo(), desk.repo()

    shown = desk.page(f"/?q={one.owner.upper()}%2Ford")

    assert f"/{one}" in shown.links
    assert f"/{other}" not in shown.links
    assert "No repository" in desk.page("/?q=%3Cnone%3E").text


def test_an_owner_has_a_page_and_a_stranger_has_none(desk: Desk) -> None:
    repo, hidden = desk.repo(), desk.repo(private=True)

    assert f"/{repo}" in desk.page(f"/{repo.owner}").links
    assert "None that you may see" in desk.page(f"/{hidden.owner}").text
    assert desk.page("/nobody", status=404).h1 == "Nothing here"


def test_a_repository_shows_files_last_changes_and_how_to_clone(desk: Desk) -> None:
    repo = desk.repo(description="One order")
    desk.write(repo, {"README.md": "# Hello\n", "dir/a.txt": "a\n", "b.txt": "b\n"}, "Begin")
    changed = desk.write(repo, {"dir/a.txt": "aa\n"}, "Change a file below")

    shown = desk.page(f"/{repo}")

    assert shown.h1.strip() == "order"
    assert "One order" in shown.text
    assert f"Clone {desk.url}/{repo}.git" in shown.text
    assert shown.text.index("dir/ Change a file below") < shown.text.index("b.txt Begin")
    assert (2, "README.md") in shown.headings
    assert (3, "Hello") in shown.headings
    assert f"/{repo}/commit/{changed}" in shown.links
    assert desk.page(f"/{repo}.git").h1 == shown.h1


def test_private_and_archived_are_marked(desk: Desk) -> None:
    repo = desk.repo(private=True)
    desk.write(repo, {"a": "1"})
    desk.client.archive(repo)

    for shown in (desk.page(f"/{repo}", auth=OWNER), desk.page(f"/{repo.owner}", auth=OWNER)):
        for mark in ("private", "archived"):
            assert mark in shown.text
    assert "cannot" not in shown.text
    assert "not changed" in desk.page(f"/{repo}", auth=OWNER).text


def test_an_empty_repository_says_how_to_fill_it(desk: Desk) -> None:
    repo = desk.repo()

    shown = desk.page(f"/{repo}")

    assert f"git clone {desk.url}/{repo}.git" in shown.text
    assert desk.page(f"/{repo}/src/branch/main/").h1 == shown.h1
    desk.page(f"/{repo}/branches", status=404)
    desk.page(f"/{repo}/commits/branch/main", status=404)


def test_every_link_of_a_walk_through_a_repository_leads_somewhere(desk: Desk) -> None:
    repo = desk.repo(description="x")
    files = {f"folder {n}/ü#{n}?.yaml": f"n: {n}\n" for n in range(3)} | {"100%.txt": "&\n"}
    desk.write(repo, files)
    desk.write(repo, {"100%.txt": "&amp;\n", "folder 1/ü#1?.yaml": None})
    head = desk.client.head(repo)
    seen, work = set[str](), [f"/{repo}"]

    while work:
        path = work.pop().partition("#")[0]
        inside = path.startswith(f"/{repo}") or path in ("/", f"/{repo.owner}")
        if path in seen or not inside:
            continue
        seen.add(path)
        answer = desk.get(path)
        assert answer.status_code == 200, path
        if answer.headers["Content-Type"].startswith("text/html"):
            work += desk.page(path).links

    assert f"/{repo}/raw/branch/main/100%25.txt" in seen
    assert f"/{repo}/commit/{head}" in seen
    assert len(seen) > 30


def test_a_branch_with_slashes_is_found_in_an_address(desk: Desk) -> None:
    repo = desk.repo()
    first = desk.write(repo, {"dir/a": "old\n"})
    desk.branch(repo, "feature/x", str(first))
    desk.write(repo, {"dir/a": "new\n"})

    assert "old" in desk.page(f"/{repo}/src/branch/feature/x/dir/a").text
    assert "new" in desk.page(f"/{repo}/src/branch/main/dir/a").text
    assert "old" in desk.page(f"/{repo}/src/commit/{first[:7]}/dir/a").text
    shown = desk.page(f"/{repo}/branches")
    assert f"/{repo}/src/branch/feature/x" in shown.links
    assert "main default" in shown.text
    assert f"/{repo}/src/branch/feature/x" in desk.page(f"/{repo}").links


def test_lines_have_anchors(desk: Desk) -> None:
    repo = desk.repo()
    desk.write(repo, {"a.yaml": "".join(f"n{number}: x\n" for number in range(20))})

    shown = desk.file(repo, "a.yaml")

    assert "L10" in shown.ids
    assert "#L10" in shown.links
    assert "L21" not in shown.ids
    assert "20 lines" in shown.text


def test_history_shows_fifty_a_page_and_that_of_one_file(desk: Desk) -> None:
    repo = desk.repo()
    desk.write(repo, {"other": "x"}, "Add the other file")
    for number in range(52):
        desk.write(repo, {"n.txt": f"{number}\n"}, f"Count to {number}")

    first, second = (desk.page(f"/{repo}/commits/branch/main?page={n}") for n in (1, 2))

    assert first.text.count("Count to") == 50
    assert "Count to 51" in first.text
    assert "?page=2" in first.links
    assert second.text.count("Count to") == 2
    assert "Add the other file" in second.text
    assert "?page=1" in second.links
    assert "?page=3" not in second.links
    of_file = desk.page(f"/{repo}/commits/branch/main/other")
    assert "Add the other file" in of_file.text
    assert "Count" not in of_file.text
    assert "No older commits" in desk.page(f"/{repo}/commits/branch/main?page=9").text


def test_a_commit_shows_who_asked_for_it_and_what_it_changed(desk: Desk) -> None:
    repo = desk.repo()
    first = desk.write(repo, {"a.yaml": "x: 1\ny: 2\n", "gone.txt": "bye\n"}, "Order")
    made = desk.write(
        repo, {"a.yaml": "x: 1\ny: 3\n", "gone.txt": None, "new/b.txt": "b"}, "Change y", "user:me"
    )

    shown = desk.page(f"/{repo}/commit/{made}")

    assert shown.h1 == "Change y"
    assert "Operation op" in shown.text
    assert "Requester (a claim) user:me" in shown.text
    assert "3 files changed: 2 lines added, 2 lines removed." in shown.text
    assert "2 - y: 2 2 + y: 3" in shown.text
    assert "No newline at the end of the file" in shown.text
    assert [text for level, text in shown.headings if level == 3] == [
        "a.yaml",
        "gone.txt",
        "new/b.txt",
    ]
    assert f"/{repo}/commit/{first}" in shown.links
    assert "none, the first commit" in desk.page(f"/{repo}/commit/{first}").text
    assert desk.page(f"/{repo}/commit/{made[:7]}").h1 == "Change y"
    assert "says it is for user:me" in desk.page(f"/{repo}/commits/branch/main").text


def test_pictures_are_shown_and_their_bytes_are_pictures(desk: Desk) -> None:
    repo = desk.repo()
    desk.write(repo, {"dot.png": b"\x89PNG\r\n\x1a\n" + bytes(20)})

    assert '<img src="' in desk.get(f"/{repo}/src/branch/main/dot.png").text
    raw = desk.get(f"/{repo}/raw/branch/main/dot.png")
    assert raw.headers["Content-Type"] == "image/png"
