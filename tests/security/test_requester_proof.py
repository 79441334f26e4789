"""Who can push can write any trailer: only a signature of Orderkit's proves a requester."""

from __future__ import annotations

import itertools
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
import yaml
from bays import EVE, XR, Bay, allow_squash, ask, merge, new_bay, set_
from changingpack import changing_pack
from commands import Command, in_process
from pusher import MALLORY, Pusher
from roguery import unprotect

from ground.errors import ConflictError, InvalidInputError, RefusedError
from orderkit.adapters.commit_signatures import Ed25519Signatures, new_signing_key
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.adapters.gitea import GiteaForge
from orderkit.cli.connecting import token
from orderkit.core.order import order_file
from orderkit.flows.change.reverting import RevertRequest, revert
from orderkit.flows.change.reviewing import merge_unreviewed
from orderkit.flows.install import doctor_checks
from orderkit.flows.install.bootstrapping import BootstrapRequest, StepVerdict, steps_of
from orderkit.flows.install.pack_rendering import values_of
from orderkit.flows.order.commit_judging import KEYS_PATH, CommitJudge, SignatureVerdict
from orderkit.flows.order.order_history import HistoryEntry, history
from orderkit.flows.platform import Platform
from orderkit.ports.forge import FileChange, MergeStyle, Operation, PullDraft
from orderkit.ports.requesters import Requester
from orderkit.ports.signatures import CommitFiles, blob_changes, signed_message
from orderkit_standins.platform import BOT, Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

_numbers = itertools.count(1)
BOB = Requester("user:default/bob")
FORGED = """{summary}

Orderkit-Operation: change-0123456789ab
Orderkit-Requester: user:default/eve
Orderkit-Requester-Proof: signed by https://backstage.example.org
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A platform whose garage lets only the requester change the level."""
    folder = tmp_path_factory.mktemp("proof")
    pack = changing_pack(folder / "pack")
    kit = pack / "templates" / "garage" / "kit.yaml"
    found = yaml.safe_load(kit.read_text())
    for change in found["spec"]["changes"]:
        if change["name"] == "level":
            change["who"] = ["requester", "team"]
    kit.write_text(yaml.safe_dump(found, sort_keys=False))
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), ())
    with running(request, on_step=lambda *_: None) as run:
        yield run


@pytest.fixture
def bay(site: Running) -> Bay:
    return new_bay(site.platform)


@pytest.fixture
def mallory(site: Running, bay: Bay, tmp_path: Path) -> Pusher:
    return clone_of(site, bay, tmp_path)


def clone_of(site: Running, bay: Bay, folder: Path) -> Pusher:
    url = f"{site.settings.forge.url}/{bay.repo}.git"
    return Pusher.cloned(folder, url, BOT, token(site.settings.forge))


def newest(bay: Bay) -> HistoryEntry:
    return history(bay.platform, bay.order)[0]


def verdicts(bay: Bay) -> list[str]:
    return [entry.signature.value for entry in history(bay.platform, bay.order)]


def stage(mallory: Pusher, old: str, new: str) -> dict[str, str]:
    return mallory.replace(str(XR), old, new)


def member(bay: Bay) -> Requester:
    """Eve, as a portal proves her."""
    return replace(EVE, proof="signed by X", groups=frozenset({f"group:default/{bay.repo.owner}"}))


def test_a_change_through_orderkit_is_proved(bay: Bay) -> None:
    done = ask(bay, set_("stage", "stage2"), requester=member(bay))

    shown = newest(bay).answer.to_json()

    assert shown["commit"] == done.commit
    assert (shown["byHand"], shown["signature"], shown["claims"]) == (False, "valid", {})
    assert (shown["requester"], shown["requesterProof"]) == ("user:default/eve", "signed by X")
    assert verdicts(bay) == ["valid", "valid"]


def test_pushed_trailers_are_claims_and_the_commit_is_by_hand(
    site: Running, bay: Bay, mallory: Pusher, capsys: pytest.CaptureFixture[str]
) -> None:
    mallory.commit(FORGED.format(summary="stage"), stage(mallory, "stage1", "stage3"))
    mallory.push()

    shown = newest(bay).answer.to_json()

    assert (shown["byHand"], shown["signature"]) == (True, "missing")
    assert [shown[key] for key in ("requester", "requesterProof", "operation")] == ["", "", ""]
    assert shown["claims"]["Orderkit-Requester"] == "user:default/eve"
    orderkit: Command = in_process(site.embedded.state.folder / "platform.yaml", capsys)
    text = orderkit("history", bay.order).out.splitlines()[0]
    assert f"{MALLORY} (by hand: not signed; claims user:default/eve)" in text


def test_a_push_without_trailers_is_by_hand(bay: Bay, mallory: Pusher) -> None:
    mallory.commit("faster", stage(mallory, "stage1", "stage3"))
    mallory.push()

    assert newest(bay).answer.to_json()["byHand"] is True
    assert newest(bay).signature is SignatureVerdict.NONE


@pytest.mark.parametrize(
    ("value", "extra", "edited"),
    [
        ("stage3", {}, ("", "")),
        ("stage2", {"README.md": "and more"}, ("", "")),
        ("stage2", {}, ("user:default/eve", "user:default/ann")),
        ("stage2", {}, ("stage1 → stage2", "nothing to see")),
        ("stage2", {}, ("Orderkit-Request:", "Orderkit-Reason: urgent\nOrderkit-Request:")),
        ("stage2", {}, ("\n\nOrderkit-Op", "\nOrderkit-Signature: any text\n\nOrderkit-Op")),
    ],
    ids=[
        "other value",
        "one more file",
        "other requester",
        "other summary",
        "one more trailer",
        "one more signature",
    ],
)
def test_a_signature_covers_message_and_content(
    bay: Bay, mallory: Pusher, value: str, extra: dict[str, str], edited: tuple[str, str]
) -> None:
    """A rewritten history: Mallory puts her commit in the place of the signed one."""
    done = ask(bay, set_("stage", "stage2"))
    mallory.pull()
    message = mallory.message(str(done.commit))
    assert edited[0] in message
    mallory.git("reset", "--quiet", "--hard", "HEAD~1")
    mallory.commit(message.replace(*edited), {**stage(mallory, "stage1", value), **extra})
    unprotect(bay.platform, bay.repo)
    mallory.push("HEAD:main", "--force")

    assert newest(bay).signature is SignatureVerdict.INVALID
    assert newest(bay).answer.to_json()["requester"] == ""


@pytest.mark.parametrize(
    "index",
    [
        ("--chmod=+x", str(XR)),
        ("--cacheinfo", "120000,{blob},{xr}"),
        ("--add", "--cacheinfo", "160000,{commit},manifests/other"),
        ("--add", "--cacheinfo", "120000,{blob},manifests/other.yaml"),
        ("--chmod=+x", ".orderkit/order.yaml"),
    ],
    ids=["executable", "link", "submodule", "another link", "another executable"],
)
def test_a_signature_covers_modes_and_submodules(
    bay: Bay, mallory: Pusher, index: tuple[str, ...]
) -> None:
    """The same message and the same blobs, in the place of the signed commit."""
    done = ask(bay, set_("stage", "stage2"))
    mallory.pull()
    blob, commit = (mallory.git("rev-parse", name) for name in (f"HEAD:{XR}", "HEAD"))
    mallory.git("update-index", *(word.format(blob=blob, commit=commit, xr=XR) for word in index))
    mallory.git("commit", "--quiet", "--amend", "--cleanup=verbatim", "-C", "HEAD")
    unprotect(bay.platform, bay.repo)
    mallory.push("HEAD:main", "--force")

    head = bay.head
    assert head not in (None, done.commit)
    judge = CommitJudge(bay.platform, bay.repo, head)
    assert judge.verdict(judge.history[0]) is SignatureVerdict.INVALID


def test_what_had_a_mode_of_its_own_may_be_changed_and_stays_proved(
    bay: Bay, mallory: Pusher
) -> None:
    mallory.git("update-index", "--chmod=+x", str(XR))
    named = f"160000,{bay.head},manifests/sub"
    mallory.git("update-index", "--add", "--cacheinfo", named)
    mallory.git("commit", "--quiet", "-m", "modes")
    mallory.push()
    done = ask(bay, set_("stage", "stage2"))

    assert done.commit
    assert bay.platform.forge.special_files(bay.repo, done.commit)[XR].mode == 0o100755
    assert verdicts(bay)[0] == "valid"


def test_a_copy_of_a_reverted_change_is_by_hand_and_the_original_is_not(
    bay: Bay, mallory: Pusher
) -> None:
    done = ask(bay, set_("stage", "stage2"))
    revert(bay.platform, RevertRequest(order=bay.order, commit=str(done.commit), requester=BOB))
    mallory.pull()
    mallory.commit(mallory.message(str(done.commit)), stage(mallory, "stage1", "stage2"))
    mallory.push()

    assert verdicts(bay) == ["copied", "valid", "valid", "valid"]
    assert newest(bay).answer.to_json()["requester"] == ""


@pytest.mark.parametrize("hers_first", [False, True], ids=["main first", "hers first"])
def test_a_copy_on_a_side_branch_is_not_taken_for_the_original(
    bay: Bay,
    mallory: Pusher,
    hers_first: bool,  # noqa: FBT001
) -> None:
    """Git's history of a file leaves out the side of a merge that the merge does not follow."""
    done = ask(bay, set_("stage", "stage2"))
    revert(bay.platform, RevertRequest(order=bay.order, commit=str(done.commit), requester=BOB))
    mallory.pull()
    mallory.git("checkout", "--quiet", "-b", "side", "HEAD~2")
    side = mallory.commit(mallory.message(str(done.commit)), stage(mallory, "stage1", "stage2"))
    merge_by_hand(mallory, side, hers_first=hers_first)

    entries = history(bay.platform, bay.order)
    copies = [entry for entry in entries if entry.commit.id == side]
    assert all(entry.signature is SignatureVerdict.COPIED for entry in copies)
    assert (entries[0].proved, entries[0].commit.author) == (False, MALLORY)
    assert [str(field) for field in entries[0].fields] == ["stage stage1 → stage2"]


@pytest.mark.parametrize("hers_first", [False, True], ids=["main first", "hers first"])
def test_a_merge_of_an_old_commit_does_not_undo_newer_ones_unseen(
    bay: Bay,
    mallory: Pusher,
    hers_first: bool,  # noqa: FBT001
) -> None:
    done = ask(bay, set_("stage", "stage2"))
    revert(bay.platform, RevertRequest(order=bay.order, commit=str(done.commit), requester=BOB))
    mallory.pull()
    merge_by_hand(mallory, str(done.commit), hers_first=hers_first)

    assert bay.spec()["stage"] == "stage2"
    entry = newest(bay)
    assert (entry.proved, entry.commit.author) == (False, MALLORY)
    assert [str(field) for field in entry.fields] == ["stage stage1 → stage2"]


def merge_by_hand(mallory: Pusher, other: str, *, hers_first: bool) -> None:
    """Push a merge of main and another commit that has the other's content."""
    parents = ["origin/main", other]
    ordered = reversed(parents) if hers_first else parents
    options = [word for parent in ordered for word in ("-p", parent)]
    merge = mallory.git("commit-tree", f"{other}^{{tree}}", *options, "-m", "Merge")
    mallory.push(f"{merge}:main")


def test_the_forge_squashes_no_pull_request_of_an_order(
    site: Running, bay: Bay, capsys: pytest.CaptureFixture[str]
) -> None:
    """That writes a new commit, and nothing proves who asked for it; merging keeps the proof."""
    pull = ask(bay, set_("colour", "red"), requester=member(bay)).pull
    assert pull is not None
    request = Operation("op-merge", "user:default/boss", "merge")
    with pytest.raises(RefusedError, match="squash"):
        merge_unreviewed(bay.platform, bay.repo, pull, request, style=MergeStyle.SQUASH)
    merge(bay, pull.number)
    assert [entry.who for entry in history(bay.platform, bay.order)][:2].count(EVE.ref) == 1

    orderkit: Command = in_process(site.embedded.state.folder / "platform.yaml", capsys)
    assert orderkit("team", "add", bay.repo.owner).code == 0  # other tests left orders that squash
    allow_squash(bay)
    warned = orderkit("doctor").out
    assert f"first {bay.repo}: that loses the proof of who asked" in warned
    assert f"'orderkit team add {bay.repo.owner}' forbids it" in warned
    assert orderkit("team", "add", bay.repo.owner).code == 0
    repository = bay.platform.forge.repo(bay.repo)
    assert repository is not None
    assert not repository.may_squash


def test_a_signature_of_another_order_proves_nothing_here(
    bay: Bay, site: Running, tmp_path: Path
) -> None:
    other = new_bay(site.platform)
    ask(other, set_("stage", "stage2"))
    (tmp_path / "other").mkdir()
    text = clone_of(site, other, tmp_path / "other")
    (tmp_path / "here").mkdir()
    mallory = clone_of(site, bay, tmp_path / "here")
    mallory.commit(text.message("HEAD"), stage(mallory, "stage1", "stage2"))
    mallory.push()

    assert newest(bay).signature is SignatureVerdict.INVALID


def test_a_signature_with_a_key_of_ones_own_proves_nothing(
    bay: Bay, mallory: Pusher, tmp_path: Path
) -> None:
    file = tmp_path / "own.pem"
    file.write_text(new_signing_key())
    own, head = Ed25519Signatures(file), bay.head
    made = mallory.commit("draft", stage(mallory, "stage1", "stage3"))
    mallory.push(f"{made}:refs/heads/draft")
    forge = bay.platform.forge
    trees = (forge.tree(bay.repo, commit) for commit in (head, made))  # type: ignore[arg-type]
    files = (CommitFiles(tree, {}) for tree in trees)
    operation = Operation("op", "user:default/eve", "stage", "signed by X")
    message = signed_message(own, bay.repo, "main", operation, blob_changes(*files), at=1)
    mallory.git("commit", "--quiet", "--amend", "--cleanup=verbatim", "-m", message)
    mallory.push()

    assert newest(bay).signature is SignatureVerdict.UNKNOWN_KEY


def test_a_planted_operation_does_not_stand_for_the_request(bay: Bay, mallory: Pusher) -> None:
    """Neither with another value nor with the same one that was taken back afterwards."""
    mallory.commit("x\n\nOrderkit-Operation: op-7\n", stage(mallory, "stage1", "stage3"))
    mallory.commit("x\n\nOrderkit-Operation: op-7\n", stage(mallory, "stage3", "stage2"))
    mallory.commit("back", stage(mallory, "stage2", "stage1"))
    mallory.push()

    done = ask(bay, set_("stage", "stage2"), operation="op-7")

    assert (done.state, done.repeated, bay.spec()["stage"]) == ("committed", False, "stage2")
    again = ask(bay, set_("stage", "stage2"), operation="op-7")
    assert (again.commit, again.repeated) == (done.commit, True)


def test_a_planted_commit_is_not_taken_for_a_write_whose_answer_was_lost(
    bay: Bay, mallory: Pusher
) -> None:
    """Its files are ours, and one more is not; then somebody changed them again."""
    before = bay.platform.forge.read(bay.repo, XR, "main")
    assert before is not None
    ours = before.text.replace("stage1", "stage2")
    message = "x\n\nOrderkit-Operation: op-8\nOrderkit-Requester: user:default/eve\n"
    mallory.commit(message, {str(XR): ours, "manifests/extra.yaml": "kind: Extra\n"})
    mallory.commit("more", stage(mallory, "stage2", "stage3"))
    mallory.push()

    with pytest.raises(ConflictError):
        bay.platform.forge.write(
            bay.repo,
            [FileChange(XR, ours.encode(), before.sha)],
            Operation("op-8", "user:default/eve", "stage"),
        )


def test_fields_of_a_planted_pull_request_do_not_become_the_requesters(
    bay: Bay, mallory: Pusher
) -> None:
    """A repeated proposal takes over the other fields of one's own pull request."""
    text = {str(XR): bay.text() + '  colour: "red"\n  motto: "for Mallory"\n'}
    mallory.git("checkout", "--quiet", "-b", "orderkit/colour-motto")
    mallory.commit(FORGED.format(summary="paint"), text)
    mallory.push("HEAD:orderkit/colour-motto")
    draft = PullDraft("paint", "Asked for by eve.", "orderkit/colour-motto", "main")
    planted = bay.platform.forge.open_pull(bay.repo, draft, Operation("op-9", EVE.ref, "paint"))

    done = ask(bay, set_("colour", "blue"), requester=member(bay))

    assert done.pull is not None
    assert done.pull.number != planted.number
    assert [edit.path for edit in done.edits] == ["colour"]
    assert "motto" not in bay.spec(done.pull.head)
    assert [(pull.number, pull.requester) for pull in done.other_pulls] == [(planted.number, "")]
    again = ask(bay, set_("colour", "green"), operation="op-9")
    assert again.repeated is False


def test_a_planted_branch_is_not_continued(bay: Bay, mallory: Pusher) -> None:
    """The name of a proposal's branch can be computed before somebody asks."""
    first = ask(bay, set_("colour", "red")).pull
    assert first is not None
    bay.platform.forge.close_pull(bay.repo, first.number)
    bay.platform.forge.delete_branch(bay.repo, first.head)
    mallory.commit("more", {"manifests/extra.yaml": "kind: Extra\n"})
    mallory.push(f"HEAD:{first.head}")

    done = ask(bay, set_("colour", "red")).pull

    assert done is not None
    assert done.head != first.head
    assert PurePosixPath("manifests/extra.yaml") not in bay.platform.forge.tree(
        bay.repo, done.head_commit
    )


def test_a_platform_of_an_older_orderkit_publishes_its_key_at_the_next_bootstrap(
    site: Running, bay: Bay
) -> None:
    platform = site.platform
    files = read_folder(reference_pack())
    request = BootstrapRequest(files, values_of(site.settings, "0" * 40), "user:default/test")
    (step,) = [step for step in steps_of(platform, request) if step.name == "ledger"]
    assert step.look().verdict is StepVerdict.DONE
    remove(platform, KEYS_PATH)

    assert step.look().verdict is StepVerdict.CHANGE
    assert verdicts(bay) == ["unknown key"]
    assert step.ensure(lambda _: None).verdict is StepVerdict.CHANGE

    assert step.look().verdict is StepVerdict.DONE
    assert verdicts(bay) == ["valid"]


def test_a_rewritten_record_makes_nobody_the_requester(bay: Bay, mallory: Pusher) -> None:
    """The kit lets the requester and the team change the level; the ledger says who they are."""
    record = str(order_file.PATH)
    mallory.commit("mine", mallory.replace(record, "user:default/eve", BOB.ref))
    team = f"team: {bay.repo.owner}"
    mallory.commit("ours", mallory.replace(record, team, "team: racers"))
    mallory.push()

    racer = replace(BOB, proof="signed by X", groups=frozenset({"group:default/racers"}))
    with pytest.raises(RefusedError, match="only requester or team may"):
        ask(bay, set_("level", "low"), requester=racer)

    proved = replace(EVE, proof="signed by X")
    assert ask(bay, set_("level", "low"), requester=proved).state == "committed"


@pytest.mark.parametrize("style", MergeStyle)
def test_what_merges_leave_of_a_proof(bay: Bay, style: MergeStyle) -> None:
    done = ask(bay, set_("colour", "red"))
    assert done.pull is not None
    merge(bay, done.pull.number, style)

    entries = history(bay.platform, bay.order)

    assert not entries[0].proved  # the merge, or the squashed commit: the forge made it
    assert [e.signature.value for e in entries[1:]] == (
        ["valid", "valid"] if style is MergeStyle.MERGE else ["valid"]
    )


def test_a_conflict_does_not_name_a_forged_requester(bay: Bay, mallory: Pusher) -> None:
    base = bay.head
    mallory.commit(FORGED.format(summary="stage"), stage(mallory, "stage1", "stage3"))
    mallory.push()

    with pytest.raises(ConflictError) as caught:
        ask(bay, set_("stage", "stage2"), base=base)

    assert EVE.ref not in str(caught.value)
    assert MALLORY in str(caught.value)


def test_the_private_key_is_its_owners_alone(site: Running) -> None:
    file = Path(str(site.settings.service.signing_key_file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "PRIVATE" not in str(site.platform.forge.read(site.platform.ledger, KEYS_PATH, "main"))


def test_an_old_key_stays_valid_until_it_is_removed(bay: Bay, tmp_path: Path) -> None:
    done = ask(bay, set_("stage", "stage2"))
    assert done.commit is not None
    file = tmp_path / "new.pem"
    file.write_text(new_signing_key())
    platform = replace(bay.platform, signatures=Ed25519Signatures(file))
    commit = bay.commits()[0]
    (missing,) = [f for f in doctor_checks.check(platform) if f.check == "signatures"]
    assert (missing.verdict, missing.advice) == ("fail", "publish it: orderkit bootstrap")
    assert CommitJudge(platform, bay.repo, done.commit).is_proved(commit)

    keys = platform.forge.read(platform.ledger, KEYS_PATH, "main")
    assert keys is not None
    remove(platform, KEYS_PATH)
    judged = CommitJudge(platform, bay.repo, done.commit).verdict(commit)
    platform.forge.write(
        platform.ledger, [FileChange(KEYS_PATH, keys.data, None)], Operation("back", "a:b/c", "x")
    )

    assert judged is SignatureVerdict.UNKNOWN_KEY


def remove(platform: Platform, path: PurePosixPath) -> None:
    found = platform.forge.read(platform.ledger, path, "main")
    assert found is not None
    change = FileChange(path, None, found.sha)
    platform.forge.write(platform.ledger, [change], Operation("remove", "a:b/c", "x"))


def test_a_machine_without_the_key_says_that_its_commits_prove_nothing(
    site: Running, bay: Bay
) -> None:
    forge = GiteaForge(site.settings.forge.url, token=token(site.settings.forge))
    keyless = replace(site.platform, forge=forge, signatures=Ed25519Signatures(None))
    done = ask(bay, set_("stage", "stage2"), platform=keyless, operation="op-1")
    again = ask(bay, set_("stage", "stage2"), platform=keyless, operation="op-1")

    assert (again.commit, again.repeated) == (done.commit, True)
    assert verdicts(bay) == ["missing", "valid"]
    (finding,) = [f for f in doctor_checks.check(keyless) if f.check == "signatures"]
    assert "not signed, so shown as made by hand" in finding.detail


@pytest.mark.parametrize("text", ["no key", "-----BEGIN PUBLIC KEY-----\nx\n"])
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "key.pem"
    file.write_text(text)

    with pytest.raises(InvalidInputError, match="is not an Ed25519 key"):
        Ed25519Signatures(file).public_key  # noqa: B018  reading it is the test
