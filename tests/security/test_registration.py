"""A push changes which kit an order says it is of, and somebody registers it again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import roguery
import rogues
from rogues import Pair

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import OrderId
from ground.objects.kube_objects import ObjectKey
from kubeschema.admission import BINDING
from orderkit.core.order import order_file
from orderkit.core.order.change import FieldEdit
from orderkit.core.order.ledger import KIT_LABEL, OrderEntry
from orderkit.flows.change import ChangeRequest, change
from orderkit.flows.install import doctor_checks
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.platform import Platform, read_text
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running
from orderkit_workshop.folders.local_pack import LocalPack
from orderkit_workshop.folders.skeletons import render_skeleton
from orderkit_workshop.generate.kit_draft import Draft
from orderkit_workshop.stories.start_kit import new_kit
from yamlfiles import yaml11

PAIR = Pair("ae86", "rx7")
LOCKER = roguery.entry_of("locker", PAIR.us, "own")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A platform with kits garage, locker and drawer, and an order ``locker-own``."""
    folder = tmp_path_factory.mktemp("registration")
    pack = rogues.rogue_pack(folder / "pack")
    new_kit(LocalPack(pack), Draft(name="locker-big", group=rogues.GROUP), render_skeleton)
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), (PAIR.us, PAIR.them))
    with running(request, on_step=lambda *_: None) as platform:
        roguery.place(platform.platform, "locker", PAIR.us, "own")
        yield platform


@pytest.fixture
def platform(site: Running) -> Iterator[Platform]:
    """The platform; afterwards the order's record is as before."""
    yield site.platform
    push_kit(site.platform, LOCKER, "locker")


def push_kit(platform: Platform, entry: OrderEntry, kit: str) -> None:
    """Push a record that names another kit."""
    revision = platform.forge.read(entry.repository, order_file.PATH, "main")
    assert revision is not None
    record = yaml11.load(revision.data, name="record", schema={})
    if record["spec"]["kit"] == kit:
        return
    record["spec"]["kit"] = kit
    changes = [FileChange(order_file.PATH, yaml11.dump(record).encode(), revision.sha)]
    operation = Operation(f"push-{entry.order}-{kit}", roguery.REQUESTER, "another kit")
    platform.forge.write(entry.repository, changes, operation)


def registration(entry: OrderEntry, kit: str) -> Registration:
    return Registration(entry.order, kit, entry.team, roguery.REQUESTER)


def registered(platform: Platform, entry: OrderEntry) -> str:
    return read_text(platform.forge, platform.ledger, entry.application_path, "main") or ""


@pytest.mark.parametrize("kit", ["drawer", "garage", "no-such-kit", "lock"])
def test_registering_again_under_another_kit_is_refused(platform: Platform, kit: str) -> None:
    before = registered(platform, LOCKER)
    push_kit(platform, LOCKER, kit)

    with pytest.raises(RefusedError, match="registered as an order of kit 'locker'"):
        register(platform, registration(LOCKER, kit))

    assert registered(platform, LOCKER) == before


def test_a_new_order_is_registered_only_under_the_kit_that_its_id_names(
    platform: Platform,
) -> None:
    order = OrderEntry(LOCKER.team, OrderId("locker-fresh"))
    publish(platform, order, "garage")

    with pytest.raises(InvalidInputError, match="is not an order of kit 'garage'"):
        register(platform, registration(order, "garage"))

    assert not registered(platform, order)


def test_an_id_with_the_longer_name_of_another_kit_is_no_order_of_the_shorter(
    platform: Platform,
) -> None:
    """Limits and reviews of ``locker-big`` are known by the id alone."""
    order = OrderEntry(LOCKER.team, OrderId("locker-big-x"))
    publish(platform, order, "locker")

    with pytest.raises(InvalidInputError, match="is the id of an order of kit 'locker-big'"):
        register(platform, registration(order, "locker"))

    assert not registered(platform, order)


def test_doctor_reports_a_policy_that_a_push_switches_off(platform: Platform) -> None:
    finding = next(
        finding for finding in doctor_checks.check(platform) if finding.check == "policies"
    )
    assert finding.verdict == "ok"
    selector = {"matchLabels": {KIT_LABEL: "locker"}}
    binding = {
        "apiVersion": BINDING.api_version,
        "kind": BINDING.kind,
        "metadata": {"name": "old.orderkit.dev"},
        "spec": {
            "policyName": "old.orderkit.dev",
            "validationActions": ["Deny"],
            "paramRef": {"selector": selector, "parameterNotFoundAction": "Allow"},
        },
    }
    platform.cluster.apply(binding, owner="test")

    finding = next(
        finding for finding in doctor_checks.check(platform) if finding.check == "policies"
    )

    platform.cluster.delete(ObjectKey(BINDING, "old.orderkit.dev"))
    assert finding.verdict == "fail"
    assert "old.orderkit.dev: a push can switch it off" in finding.detail


def test_a_kit_that_does_not_exist_is_refused(platform: Platform) -> None:
    order = OrderEntry(LOCKER.team, OrderId("nothing-fresh"))
    publish(platform, order, "nothing")

    with pytest.raises(NotFoundError, match="nothing"):
        register(platform, registration(order, "nothing"))

    assert not registered(platform, order)


def test_a_pushed_kit_does_not_choose_the_rules_of_a_change(platform: Platform) -> None:
    push_kit(platform, LOCKER, "drawer")
    request = ChangeRequest(
        order=LOCKER.order,
        edits=(FieldEdit("serial", "set", "second"),),
        requester=Requester(roguery.REQUESTER),
    )

    with pytest.raises(RefusedError, match="registered as an order of kit 'locker'"):
        change(platform, request)


def test_the_same_registration_again_changes_nothing(platform: Platform) -> None:
    register(platform, registration(LOCKER, "locker"))  # delivers what others pushed to main

    assert not register(platform, registration(LOCKER, "locker")).changed


def publish(platform: Platform, entry: OrderEntry, kit: str) -> None:
    """Make a repository by hand, with a record that says what the person likes."""
    platform.forge.ensure_repo(entry.repository, description="by hand")
    revision = platform.forge.read(LOCKER.repository, order_file.PATH, "main")
    assert revision is not None
    record = yaml11.load(revision.data, name="record", schema={})
    record["metadata"]["name"], record["spec"]["kit"] = str(entry.order), kit
    changes = [FileChange(order_file.PATH, yaml11.dump(record).encode(), None)]
    operation = Operation(f"publish-{entry.order}", roguery.REQUESTER, "by hand")
    platform.forge.write(entry.repository, changes, operation)
