"""The forge's state folder outlives releases, and numbers are given once."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from orderkit_standins.forge import EmbeddedForge
from orderkit_standins.forge.accounts import Accounts
from orderkit_standins.forge.issues import Issues, NewIssue
from orderkit_standins.forge.repositories import NewRepository
from orderkit_standins.forge.store import MIGRATIONS, Store
from orderkit_standins.forge.teams import Teams


def test_a_state_of_the_first_release_is_opened_and_kept(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "forge.sqlite", isolation_level=None)) as old:
        old.executescript(f"BEGIN;{MIGRATIONS[0]}PRAGMA user_version=1;COMMIT;")
        old.execute("INSERT INTO accounts (name, lower_name, is_org) VALUES ('Ann', 'ann', 0)")

    with closing(Store(tmp_path / "forge.sqlite")) as store:
        assert Accounts(store, Teams(store)).find("ann") is not None
        row = store.row("PRAGMA user_version")
        assert row is not None
        assert row[0] == len(MIGRATIONS)
        assert store.rows("SELECT * FROM issues") == []


def test_owners_of_an_earlier_release_are_the_owners_team_of_this_one(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "forge.sqlite", isolation_level=None)) as old:
        old.executescript(f"BEGIN;{MIGRATIONS[0]}PRAGMA user_version=1;COMMIT;")
        for name, is_org in (("ann", 0), ("bob", 0), ("lonely", 1), ("team", 1)):
            sql = "INSERT INTO accounts (name, lower_name, is_org) VALUES (?, ?, ?)"
            old.execute(sql, (name, name, is_org))
        old.execute("INSERT INTO owners VALUES (4, 1)")

    with closing(Store(tmp_path / "forge.sqlite")) as store:
        teams = Teams(store)
        assert teams.is_owner(4, 1)
        assert not teams.is_owner(4, 2)
        assert not teams.is_owner(3, 1)
        assert [team.settings.name for team in teams.of_org(3)] == ["Owners"]


def test_numbers_are_given_once_however_many_ask(tmp_path: Path) -> None:
    with closing(EmbeddedForge(tmp_path)) as forge:
        forge.ensure_user("ann", "ann-pw1")
        ann = forge.accounts.find("ann")
        assert ann is not None
        repo = forge.repositories.create(ann, NewRepository("r"))

        def create(_: int) -> int:
            return forge.issues.create(repo.id, NewIssue(ann.id, "t")).number

        with ThreadPoolExecutor(8) as pool:
            numbers = list(pool.map(create, range(40)))

        assert sorted(numbers) == list(range(1, 41))


def test_the_number_of_a_deleted_issue_is_not_given_again(
    tmp_path: Path,
) -> None:
    with closing(EmbeddedForge(tmp_path)) as forge:
        forge.ensure_user("ann", "ann-pw1")
        ann = forge.accounts.find("ann")
        assert ann is not None
        repo = forge.repositories.create(ann, NewRepository("r"))
        first = forge.issues.create(repo.id, NewIssue(ann.id, "t"))

        with closing(Store(tmp_path / "forge.sqlite")) as store:
            store.change("DELETE FROM issues WHERE id = ?", first.id)
            assert Issues(store).create(repo.id, NewIssue(ann.id, "t")).number == 2
