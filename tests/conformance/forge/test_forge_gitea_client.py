"""What only Gitea does, seen through its client: odd commits, and rules of branches."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
from tests.conformance.forge.test_forge_port_review import CHECK, collaborate

from ground.errors import RefusedError

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

A = PurePosixPath("dir/a.txt")


def test_f28_a_pushed_commit_that_is_not_utf8_hides_no_head(shop: Workshop) -> None:
    """Gitea 1.27 answers 200 without a body when it is to show such a commit."""
    repo = shop.seeded_repo()
    sha = shop.push_odd(repo, "main", author=b"A\xe9")

    head = shop.forge.head(repo)

    assert head == sha
    assert shop.forge.read(repo, A, head) is not None
    with pytest.raises(RefusedError, match="its author or message is not UTF-8"):
        shop.forge.commits(repo)


@pytest.mark.parametrize(
    "widened",
    [
        {"push_whitelist_usernames": ["{guest}"]},
        {"enable_merge_whitelist": False},
        {"enable_push": True, "enable_push_whitelist": False},
        {"block_admin_merge_override": False},
        {"status_check_contexts": []},
    ],
    ids=str,
)
def test_f213_a_widened_rule_is_noticed_and_repaired(
    shop: Workshop, widened: dict[str, Any]
) -> None:
    repo = shop.seeded_repo()
    collaborate(shop, repo, "write")
    shop.forge.protect_branch(repo, "main", checks=[CHECK])
    body = {k: [shop.outsider[0]] if v == ["{guest}"] else v for k, v in widened.items()}
    path = f"/repos/{repo}/branch_protections/main"
    assert shop.api("PATCH", path, body).status_code == 200

    assert not shop.forge.is_protected(repo, "main", checks=[CHECK])
    assert shop.forge.protect_branch(repo, "main", checks=[CHECK])
    assert shop.forge.is_protected(repo, "main", checks=[CHECK])


def test_f214_a_pattern_that_counts_first_is_named(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    rule = {"rule_name": "m*", "enable_push": True}
    assert shop.api("POST", f"/repos/{repo}/branch_protections", rule).status_code == 201

    with pytest.raises(RefusedError, match=r"the rule 'm\*' counts first"):
        shop.forge.protect_branch(repo, "main", checks=[CHECK])
