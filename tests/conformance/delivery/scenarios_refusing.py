"""Scenarios: what is refused, and in which words."""

from __future__ import annotations

from tests.conformance.delivery.builders import RIG, config_map, namespace, rig, widget
from tests.conformance.delivery.platforms import SECRET
from tests.conformance.delivery.playing import scenario
from tests.conformance.delivery.scenarios_ordering import NO_RETRY
from tests.conformance.delivery.stage import Stage

GIVEN_UP = {"sync": "OutOfSync", "fault": "Failed last sync attempt"}
FILE = {"manifests/a.yaml": config_map("a")}
BROKEN = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n data: {v: '2'}\n"


@scenario
def bad_yaml(stage: Stage) -> None:
    """A malformed file is a ComparisonError: sync Unknown, health as before, revision main."""
    stage.push({"manifests/a.yaml": config_map("a", v="1")})
    stage.deliver()
    stage.delivered()
    stage.step("a malformed file")
    stage.push_and_refresh({"manifests/a.yaml": BROKEN})
    stage.until(sync="Unknown", fault="ComparisonError", health="Healthy", at="main")
    stage.holds("a", v="1")
    stage.step("repaired")
    stage.push_and_refresh({"manifests/a.yaml": config_map("a", v="3")})
    stage.delivered()


@scenario
def a_missing_path(stage: Stage) -> None:
    """A folder that is not there is a ComparisonError."""
    stage.push(dict(FILE))
    stage.deliver(path="nowhere")
    stage.until(sync="Unknown", fault="app path does not exist", health="Healthy", at="main")


@scenario
def a_missing_revision(stage: Stage) -> None:
    """A branch that is not there is a ComparisonError."""
    stage.push(dict(FILE))
    stage.deliver(revision="nowhere")
    stage.until(sync="Unknown", fault="to a commit SHA", at="nowhere")


@scenario
def a_missing_repository(stage: Stage) -> None:
    """A repository that is not there is a ComparisonError; it may come later."""
    stage.deliver()
    stage.until(sync="Unknown", fault="ComparisonError", at="main")
    stage.step("it comes")
    stage.push_and_refresh(dict(FILE))
    stage.delivered()


@scenario
def an_empty_repository(stage: Stage) -> None:
    """A repository without commits is a ComparisonError."""
    stage.push({"other.txt": ""}, branch="side")
    stage.deliver()
    stage.until(sync="Unknown", fault="ComparisonError", at="main")


@scenario
def one_object_twice(stage: Stage) -> None:
    """An object that appears twice is warned about."""
    stage.push(
        {"manifests/a.yaml": config_map("a", v="1"), "manifests/b.yaml": config_map("a", v="1")}
    )
    stage.deliver()
    stage.until(fault="RepeatedResourceWarning", phase="Succeeded", sync="Synced")


@scenario
def a_shared_resource(stage: Stage) -> None:
    """One object in two Applications: the second is OutOfSync and says whose it is."""
    stage.push(dict(FILE))
    stage.deliver("first")
    stage.delivered("first")
    stage.step("the second")
    stage.deliver("second", automated=None)
    stage.until("second", fault="SharedResourceWarning", sync="OutOfSync")
    stage.step("the second fails on it")
    operation = {"sync": {"syncOptions": ["FailOnSharedResource=true"]}}
    stage.patch_app("second", {"operation": operation})
    stage.until("second", phase="Failed", says="Shared resource found")


@scenario
def a_missing_project(stage: Stage) -> None:
    """Without its AppProject an Application is invalid; with it, it is delivered."""
    stage.push(dict(FILE))
    stage.deliver(project=stage.own("late"))
    stage.until(fault="InvalidSpecError", sync="Unknown")
    stage.step("the project comes")
    stage.project("late")
    stage.refresh("shop")
    stage.delivered()


@scenario
def a_forbidden_source(stage: Stage) -> None:
    """A repository that the project does not name is refused."""
    stage.push(dict(FILE))
    allowed = stage.url("other").removesuffix("other.git")
    narrow = stage.project("narrow", sourceRepos=[f"{allowed}other*"])
    stage.deliver(project=narrow)
    stage.until(fault="InvalidSpecError", sync="Unknown", health="Unknown")
    assert stage.data("a") is None
    stage.step("it is allowed")
    stage.project("narrow", sourceRepos=[f"{allowed}*"])
    stage.refresh("shop")
    stage.delivered()


@scenario
def a_forbidden_destination(stage: Stage) -> None:
    """A destination that the project does not name is refused."""
    stage.push(dict(FILE))
    narrow = stage.project("narrow", destinations=[{"server": "*", "namespace": "elsewhere-*"}])
    stage.deliver(project=narrow)
    stage.until(fault="InvalidSpecError", sync="Unknown")
    assert stage.data("a") is None


@scenario
def a_denied_destination(stage: Stage) -> None:
    """A destination with ``!`` is denied, whatever else is allowed."""
    stage.push(dict(FILE))
    destinations = [{"server": "*", "namespace": "*"}, {"server": "*", "namespace": f"!{stage.id}"}]
    stage.deliver(project=stage.project("narrow", destinations=destinations))
    stage.until(fault="InvalidSpecError", sync="Unknown")


@scenario
def an_unknown_cluster(stage: Stage) -> None:
    """A server that nobody registered is refused."""
    stage.push(dict(FILE))
    stage.deliver(server="https://127.0.0.1:1")
    stage.until(fault="InvalidSpecError", sync="Unknown")


@scenario
def a_forbidden_cluster_kind(stage: Stage) -> None:
    """A cluster-scoped kind that the project does not list fails the sync, in a result."""
    files = {**FILE, "manifests/r.yaml": rig(stage.own("r"))}
    stage.push(files)
    stage.deliver(project=stage.project("narrow", clusterResourceWhitelist=[]), retry=NO_RETRY)
    stage.until(phase="Failed", refused="is not permitted in project", **GIVEN_UP)
    assert stage.get(RIG, stage.own("r"), "") is None
    stage.step("it is allowed")
    stage.project("narrow", clusterResourceWhitelist=[{"group": RIG.group, "kind": "Rig"}])
    stage.push_and_refresh({"manifests/b.yaml": config_map("b")})
    stage.until(phase="Succeeded", sync="Synced", health="Progressing")


@scenario
def a_forbidden_kind(stage: Stage) -> None:
    """``namespaceResourceWhitelist: []`` allows no namespaced kind at all."""
    stage.push(dict(FILE))
    stage.deliver(project=stage.project("narrow", namespaceResourceWhitelist=[]), retry=NO_RETRY)
    stage.until(phase="Failed", refused="is not permitted in project", **GIVEN_UP)
    assert stage.data("a") is None


@scenario
def a_blacklisted_kind(stage: Stage) -> None:
    """``namespaceResourceBlacklist`` forbids a kind and no other."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    black = [{"group": "", "kind": "Secret"}]
    stage.push({**FILE, "manifests/s.yaml": secret})
    stage.deliver(project=stage.project("narrow", namespaceResourceBlacklist=black), retry=NO_RETRY)
    stage.until(phase="Failed", refused="is not permitted in project", **GIVEN_UP)
    assert stage.get(SECRET, "s") is None


@scenario
def a_forbidden_namespace(stage: Stage) -> None:
    """An object that names a namespace outside the project's destinations fails the sync."""
    foreign = config_map("foreign")
    foreign["metadata"]["namespace"] = "default"
    stage.push({**FILE, "manifests/f.yaml": foreign})
    destinations = [{"server": "*", "namespace": stage.id}]
    stage.deliver(project=stage.project("narrow", destinations=destinations), retry=NO_RETRY)
    stage.until(phase="Failed", refused="is not permitted in project", **GIVEN_UP)


@scenario
def a_forbidden_kind_is_retried(stage: Stage) -> None:
    """With retries the operation goes on, and no condition says why: only the result does."""
    stage.push({"manifests/w.yaml": widget("w")})
    stage.deliver(
        project=stage.project("narrow", namespaceResourceWhitelist=[]),
        retry={"limit": -1, "backoff": {"duration": "1s", "factor": 1}},
    )
    stage.until(phase="Running", says="Retrying", refused="is not permitted", fault=None)
    stage.retried()


@scenario
def create_namespace_needs_a_right(stage: Stage) -> None:
    """``CreateNamespace=true`` needs Namespace in the project's cluster kinds."""
    stage.push(dict(FILE))
    stage.deliver(
        project=stage.project("narrow", clusterResourceWhitelist=[]),
        destination=stage.own("new"),
        options=["CreateNamespace=true"],
        retry=NO_RETRY,
    )
    stage.until(phase="Failed", **GIVEN_UP)


@scenario
def an_object_the_server_refuses(stage: Stage) -> None:
    """What the API server refuses fails the sync with the server's words."""
    stage.push({"manifests/w.yaml": widget("w", size=1000)})
    stage.deliver(retry=NO_RETRY)
    stage.until(phase="Failed", refused="spec.size", **GIVEN_UP)


@scenario
def a_namespace_that_is_going(stage: Stage) -> None:
    """A missing destination namespace fails the sync with the server's words."""
    stage.push({**FILE, "manifests/n.yaml": namespace(stage.own("inner"))})
    stage.deliver(destination=stage.own("nowhere"), retry=NO_RETRY)
    stage.until(phase="Failed", refused="not found", **GIVEN_UP)
