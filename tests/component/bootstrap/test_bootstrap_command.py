"""``orderkit bootstrap`` on a platform whose parts run: planned, carried out, repeated."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from commands import Command, Done
from packcopies import copied_pack
from rivals import Rival

from compositions.resource_builders import seed_secret
from ground.errors import IncompleteError, RefusedError, RemoteError
from ground.names import CommitSha, RepoId
from ground.objects.kube_objects import APPLICATION, XRD, ObjectKey
from ground.shapes import changed
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.platform.installation import ArgoCDSettings, Installation
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.install.bootstrapping import (
    BootstrapRequest,
    BootstrapStep,
    StepVerdict,
    steps_of,
)
from orderkit.flows.install.bootstrapping.argocd_steps import ARGOCD_CM
from orderkit.flows.install.bootstrapping.platform_repositories import SECRET_NAME
from orderkit.flows.install.bootstrapping.probe_order import ProbeStep
from orderkit.flows.install.bootstrapping.steps import BootstrapContext
from orderkit.flows.install.pack_rendering import values_of
from orderkit.flows.platform import ledger_snapshot
from orderkit.flows.team.connections import SECRET, unhooked_teams
from orderkit.flows.team.teams import add_team, remove_team
from orderkit.ports.forge import FileChange, Operation

from .conftest import Bare


def steps(done: Done) -> dict[str, str]:
    """Return each step's verdict."""
    return {step["step"]: step["verdict"] for step in done.json["steps"]}


def heads(site: Bare) -> list[CommitSha | None]:
    forge = site.platform.forge
    return [forge.head(repo) for repo in (site.platform.pack_repo, site.platform.ledger)]


def test_a_plan_tells_every_step_and_writes_nothing(site: Bare, orderkit: Command) -> None:
    done = orderkit("bootstrap", "--plan", "--json")

    found = steps(done)
    assert done.code == 0, done.err
    assert [found[name] for name in ("forge", "cluster", "argocd")] == ["already so"] * 3
    assert {found[name] for name in ("settings", "pack", "ledger", "root", "team ae86")} == {
        "would create"
    }
    assert found["probe"] == "would create"
    assert heads(site) == [None, None]
    assert site.platform.cluster.list(APPLICATION).items == ()
    assert site.platform.cluster.get(ARGOCD_CM) is None


def test_a_bootstrap_ends_with_a_probe_that_left_its_tombstone_only(
    site: Bare, orderkit: Command
) -> None:
    done = orderkit("bootstrap", "--json")

    assert done.code == 0, done.err
    told = {step["step"]: step["detail"] for step in done.json["steps"]}
    assert "stage=stage1 delivered" in told["probe"]
    platform = site.platform
    assert platform.cluster.serves(XRD)
    assert platform.forge.repo(RepoId("ae86", "garage-ae86")) is None
    assert platform.cluster.get(application_key("garage-ae86")) is None
    assert platform.catalog.entity("component:default/garage-ae86") is None
    paths = [str(path) for path in ledger_snapshot(platform).blobs]
    assert "apps/ae86/garage-ae86.yaml" not in paths
    assert [path for path in paths if "tombstone" in path]


def test_a_repeated_bootstrap_writes_nothing(site: Bare, orderkit: Command) -> None:
    assert orderkit("bootstrap", "--no-probe").code == 0
    before = heads(site)

    done = orderkit("bootstrap", "--no-probe", "--json")

    assert set(steps(done).values()) == {"already so"}
    assert heads(site) == before
    assert set(steps(orderkit("bootstrap", "--no-probe", "--plan", "--json")).values()) == {
        "already so"
    }


def test_a_team_of_an_earlier_release_gets_its_webhook(site: Bare, orderkit: Command) -> None:
    assert orderkit("bootstrap", "--no-probe").code == 0
    without = replace(site.platform, webhook=None)
    add_team(without, "older", requester="user:default/test")
    assert unhooked_teams(site.platform) == ["older"]

    planned = orderkit("bootstrap", "--no-probe", "--plan", "--json")
    done = orderkit("bootstrap", "--no-probe", "--json")

    assert steps(planned)["webhooks"] == "would create"
    assert steps(done)["webhooks"] == "created"
    assert unhooked_teams(site.platform) == []
    remove_team(site.platform, "older", requester="user:default/test")


def test_the_last_team_stays(site: Bare, orderkit: Command) -> None:
    assert orderkit("bootstrap", "--no-probe").code == 0
    before = heads(site)

    refused = orderkit("team", "remove", "ae86")

    assert refused.code == 4
    assert "team ae86 is the last one: Argo CD does not prune" in refused.err
    assert "add another team first" in refused.err
    assert heads(site) == before


def test_every_template_is_a_location_of_the_portal(site: Bare, orderkit: Command) -> None:
    orderkit("bootstrap", "--no-probe")

    catalog = site.platform.catalog
    for name in ("garage", "garage.end", "garage.lease", "garage.stage"):
        assert catalog.entity(f"template:default/{name}") is not None, name
    assert len(catalog.locations()) == 4


def test_a_plan_names_what_has_been_changed_by_hand(site: Bare, orderkit: Command) -> None:
    assert orderkit("bootstrap", "--no-probe").code == 0
    root = application_key("root")
    patch = {"spec": {"source": {"targetRevision": "elsewhere"}}}
    site.platform.cluster.patch(root, patch, owner="somebody")
    site.platform.catalog.unregister(site.platform.catalog.locations()[0].target)

    found = steps(orderkit("bootstrap", "--no-probe", "--plan", "--json"))
    done = orderkit("bootstrap", "--no-probe", "--json")

    assert (found["root"], found["portal"]) == ("would change", "would create")
    assert (steps(done)["root"], steps(done)["portal"]) == ("changed", "created")
    live = site.platform.cluster.get(root) or {}
    assert live["spec"]["source"]["targetRevision"] == "main"


def test_a_probe_that_fails_names_its_step_and_what_it_left_and_goes_on_when_repeated(
    site: Bare, orderkit: Command
) -> None:
    assert orderkit("bootstrap", "--no-probe").code == 0
    values = values_of(site.settings, "0" * 40)
    request = BootstrapRequest(read_folder(reference_pack()), values, "user:default/test")

    def fail() -> None:
        raise RemoteError("the forge is down")

    forge: Any = Rival(site.platform.forge, "merge_pull", fail)
    step = ProbeStep(BootstrapContext(replace(site.platform, forge=forge), request))

    with pytest.raises(IncompleteError) as failed:
        step.ensure(lambda _: None)
    done = step.ensure(lambda _: None)

    assert str(failed.value) == (
        "step 'change' of garage-ae86 failed: the forge is down; left behind: repository"
        " ae86/garage-ae86, Application garage-ae86, its catalog location"
    )
    assert "repeat 'orderkit bootstrap' to continue with the same probe" in failed.value.hint
    assert done.detail.endswith("; nothing is left")
    assert "stage=stage1 delivered in " in done.detail
    assert site.platform.forge.repo(RepoId("ae86", "garage-ae86")) is None


def test_an_order_of_people_is_no_probe(site: Bare, orderkit: Command) -> None:
    assert orderkit("bootstrap", "--no-probe").code == 0
    with_service = orderkit("bootstrap", "--json")
    assert with_service.code == 0, with_service.err
    repo = RepoId("ae86", "garage-ae86")
    site.platform.forge.ensure_repo(repo, description="somebody's")
    write = FileChange(PurePosixPath("README.md"), b"mine\n", None)
    site.platform.forge.write(repo, [write], Operation("mine", "user:default/eve", "mine"))

    done = orderkit("bootstrap", "--json")

    assert done.code == 0, done.err
    assert steps(done)["probe"] == "left out"
    assert "ae86/garage-ae86 is not an order" in done.json["steps"][-1]["detail"]
    assert len(site.platform.forge.commits(repo)) == 1
    site.platform.forge.delete_repo(repo)


def test_another_platforms_pack_is_not_written_over(site: Bare, orderkit: Command) -> None:
    assert orderkit("bootstrap", "--no-probe").code == 0
    before = heads(site)
    other = site.written("other", name="another", registry="registry.example.org")

    planned = orderkit("bootstrap", "--plan", "--json", platform_file=other)
    done = orderkit("bootstrap", "--no-probe", platform_file=other)

    assert steps(planned)["pack"] == "fails"
    assert done.code == 4
    assert "holds the pack of platform 'embedded'" in done.err
    assert "--replace-pack" in done.err
    assert heads(site) == before


def test_another_pack_is_not_written_over(site: Bare, orderkit: Command, tmp_path: Path) -> None:
    assert orderkit("bootstrap", "--no-probe").code == 0
    before, other = heads(site), copied_pack(tmp_path / "other")
    name = (other / "pack.yaml").read_text().replace("name: ", "name: other-")
    (other / "pack.yaml").write_text(name)

    done = orderkit("bootstrap", "--no-probe", "--pack", str(other))

    assert done.code == 4, done.out
    assert "would replace it" in done.err
    assert "name another spec.packRepository, or --replace-pack" in done.err
    assert heads(site) == before


def test_a_wrong_token_is_told_with_its_file(site: Bare, orderkit: Command, tmp_path: Path) -> None:
    token = tmp_path / "wrong"
    token.write_text("0123456789012345678901234567890123456789")
    forge = changed(site.settings.forge, token_file=token)

    done = orderkit("bootstrap", platform_file=site.written("wrong", forge=forge))

    assert done.code == 1
    assert "forge: " in done.err
    assert str(token) in done.err


def test_an_unreachable_forge_stops_before_anything_is_written(
    site: Bare, orderkit: Command
) -> None:
    forge = changed(site.settings.forge, url="http://127.0.0.1:9")

    done = orderkit("bootstrap", "--json", platform_file=site.written("gone", forge=forge))

    assert done.code == 1
    assert [step["verdict"] for step in done.json["steps"]] == ["fails"]
    assert "127.0.0.1:9" in done.json["steps"][0]["detail"]


def test_a_too_old_argo_cd_is_refused(site: Bare, orderkit: Command) -> None:
    done = orderkit(
        "bootstrap",
        platform_file=site.written(
            "old", installation=Installation(argocd=ArgoCDSettings(version="2.10.7"))
        ),
    )

    assert done.code == 4
    assert "Argo CD 2.10.7 is older than 3.4.10" in done.err


def test_a_broken_pack_is_told_before_anything_is_asked(
    site: Bare, orderkit: Command, tmp_path: Path
) -> None:
    (tmp_path / "pack.yaml").write_text("apiVersion: orderkit.dev/v1alpha1\nkind: Pack\n")
    before = heads(site)

    done = orderkit("bootstrap", "--pack", str(tmp_path))

    assert done.code == 2
    assert "pack.yaml" in done.err
    assert heads(site) == before


def test_private_repositories_get_argo_cd_a_credential(
    site: Bare, orderkit: Command, tmp_path: Path
) -> None:
    """And a forge with an authority of its own is trusted under its host's name."""
    token, authority = tmp_path / "read", tmp_path / "ca.pem"
    token.write_text("read-only-token\n")
    (tmp_path / "ae86").write_text("token-of-the-team\n")
    authority.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    forge = changed(
        site.settings.forge, private=True, read_token_file=token, team_token_folder=tmp_path
    )
    file = site.written("private", forge=forge)

    assert orderkit("bootstrap", "--no-probe", platform_file=file).code == 0

    secret = site.platform.cluster.get(ObjectKey(SECRET, SECRET_NAME, "argocd")) or {}
    assert secret["metadata"]["labels"]["argocd.argoproj.io/secret-type"] == "repo-creds"
    assert secret["data"]["password"] == "cmVhZC1vbmx5LXRva2Vu"
    again = orderkit("bootstrap", "--no-probe", "--json", platform_file=file)
    assert steps(again)["repositories"] == "already so"


def seed_steps(site: Bare) -> list[BootstrapStep]:
    """Return the step of the seed, twice, as two runs have it; the pack's kit composes a Secret."""
    files = dict(read_folder(reference_pack()))
    kit = PurePosixPath("templates/garage/kit.yaml")
    more = b"  composes:\n    - {apiVersion: v1, kind: Secret}\n"
    assert b"  composes:\n" in files[kit]
    files[kit] = files[kit].replace(b"  composes:\n", more)
    values = values_of(site.settings, CommitSha("0" * 40))
    request = BootstrapRequest(files, values, "user:default/test")
    runs = [steps_of(site.platform, request) for _ in range(2)]
    return [step for steps in runs for step in steps if step.name == "passwords"]


SEED = ObjectKey(SECRET, "orderkit-password-seed", "crossplane-system")


def test_a_seed_of_passwords_is_drawn_once_and_never_shown(site: Bare, orderkit: Command) -> None:
    cluster = site.platform.cluster
    assert "passwords" not in steps(orderkit("bootstrap", "--no-probe", "--plan", "--json"))
    first, second = seed_steps(site)
    cluster.delete(SEED)

    assert first.look().verdict is StepVerdict.CREATE
    assert cluster.get(SEED) is None
    with ThreadPoolExecutor() as pool:
        looks = list(pool.map(lambda step: step.ensure(print), (first, second)))
    drawn = cluster.get(SEED) or {}
    assert len(base64.b64decode(drawn["data"]["seed"])) == 64
    again = first.ensure(print)

    assert again.verdict is StepVerdict.DONE
    assert cluster.get(SEED) == drawn
    seed = base64.b64decode(drawn["data"]["seed"]).decode()
    assert not any(seed in look.detail + look.advice for look in (*looks, again))


def test_a_seed_that_is_too_short_is_left_as_it_is(site: Bare) -> None:
    cluster = site.platform.cluster
    (step, _) = seed_steps(site)
    cluster.apply(seed_secret("short"), owner="somebody")
    before = cluster.get(SEED)

    with pytest.raises(RefusedError, match="has no seed of at least 32 bytes") as refusal:
        step.ensure(print)

    assert "short" not in f"{refusal.value} {refusal.value.hint}".replace("orderkit", "")
    assert cluster.get(SEED) == before
    cluster.delete(SEED)
    step.ensure(print)
