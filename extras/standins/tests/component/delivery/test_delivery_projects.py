"""What an AppProject does not permit is neither delivered nor seen nor deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Manifest, ObjectKey, dig

if TYPE_CHECKING:
    from extras.standins.tests.component.delivery.conftest import Lab

HERE = "https://kubernetes.default.svc"
ONLY_DEFAULT: dict[str, Any] = {"destinations": [{"server": HERE, "namespace": "default"}]}


def test_a_kind_that_is_not_permitted_fails_the_sync_and_nothing_is_applied(lab: Lab) -> None:
    lab.apply(lab.project("ae86", clusterResourceWhitelist=[]))
    lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a"), namespace("sneaky"))})
    lab.apply(lab.application("shop", "ae86/shop", project="ae86", retry={"limit": 0}))

    app = failed(lab, "shop")

    assert reasons(app) == ["resource :Namespace is not permitted in project ae86"]
    assert dig(app, "status", "conditions")[0]["type"] == "SyncError"
    assert {one["kind"]: one["status"] for one in dig(app, "status", "resources")} == {
        "ConfigMap": "OutOfSync",
        "Namespace": "Unknown",
    }
    assert lab.map_data("a") is None
    assert lab.cluster.get(ObjectKey(NAMESPACE, "sneaky")) is None


def test_a_namespace_that_is_not_permitted_fails_the_sync(lab: Lab) -> None:
    lab.apply(lab.project("ae86", **ONLY_DEFAULT))
    foreign = lab.config_map("a")
    foreign["metadata"]["namespace"] = "argocd"
    lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(foreign)})
    lab.apply(lab.application("shop", "ae86/shop", project="ae86", retry={"limit": 0}))

    app = failed(lab, "shop")

    assert reasons(app) == ["namespace argocd is not permitted in project 'ae86'"]
    assert lab.cluster.get(ObjectKey(CONFIG_MAP, "a", "argocd")) is None


def test_a_foreign_repository_or_destination_is_an_invalid_spec_until_it_is_permitted(
    lab: Lab,
) -> None:
    commit = lab.push("rx7/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a"))})
    lab.apply(lab.project("ae86", sourceRepos=["http://127.0.0.1:7300/ae86/*"], **ONLY_DEFAULT))
    lab.apply(lab.application("shop", "rx7/shop", project="ae86"))
    lab.apply(lab.application("away", "ae86/away", project="ae86", destination="argocd"))

    lab.wait_condition("shop", "InvalidSpecError", "application repo http://127.0.0.1:7300/rx7/")
    lab.wait_condition("away", "InvalidSpecError", "do not match any of the allowed destinations")
    lab.apply(lab.project("ae86"))

    lab.wait_synced("shop", commit)


def test_what_a_project_no_longer_permits_is_not_pruned(lab: Lab) -> None:
    lab.apply(lab.project("ae86"))
    first = lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a"), sneaky())})
    lab.apply(lab.application("shop", "ae86/shop", project="ae86"))
    lab.wait_synced("shop", first)

    lab.apply(lab.project("ae86", clusterResourceWhitelist=[]))
    lab.refresh("shop")  # a comparison that began before still prunes
    second = lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a"))})

    lab.wait("a look at the second commit", lambda: compared(lab.app("shop")) == second)
    app = lab.app("shop")
    assert dig(app, "status", "sync", "status") == "Synced"
    assert [one["kind"] for one in dig(app, "status", "resources")] == ["ConfigMap"]
    assert lab.cluster.get(ObjectKey(NAMESPACE, "sneaky")) is not None


def sneaky() -> Manifest:
    return namespace("sneaky")


def namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def failed(lab: Lab, name: str) -> Manifest:
    """Wait until an Application's operation has failed and is told."""

    def look() -> Manifest | None:
        app = lab.app(name)
        ended = dig(app, "status", "operationState", "phase") == "Failed"
        return app if ended and dig(app, "status", "conditions") else None

    return lab.wait(f"{name} failing", look) or {}


def compared(app: Manifest) -> object:
    return dig(app, "status", "sync", "revision")


def reasons(app: Manifest) -> list[str]:
    found = dig(app, "status", "operationState", "syncResult", "resources", default=())
    return [one["message"] for one in found]
