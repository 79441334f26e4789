"""What an earlier release wrote is read; what a later one wrote is refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from ground.errors import InvalidInputError, RefusedError
from ground.names import BlobSha, TeamName
from orderkit.core.campaign import definition, record
from orderkit.core.kit.order_kinds import read_kinds
from orderkit.core.kit.pack import read_kit, read_pack
from orderkit.core.order import approval, end_record, lease, ledger, order_file, team_file
from orderkit.core.plan import snapshot
from orderkit.core.plan.price_table import read_prices
from orderkit.core.platform import settings
from orderkit.core.platform.service_access import read_clients
from orderkit.flows.argocd.commit_pinning import application_of
from orderkit.ports.forge import FileRevision
from yamlfiles.format_versions import API_VERSION, UPGRADE, refuse_newer

RELEASES = sorted((Path(__file__).parents[1] / "formats").glob("*.*.*"))
LATER = "orderkit.dev/v1beta1"


def _kit(data: bytes) -> Any:
    definition_file = PurePosixPath("gitops/apis/garage/definition.yaml")
    return read_kit(
        "garage",
        {
            PurePosixPath("templates/garage/kit.yaml"): data,
            definition_file: (RELEASES[0] / definition_file).read_bytes(),
        },
    )


def _entry(data: bytes) -> Any:
    return application_of(FileRevision(PurePosixPath("apps/x.yaml"), data, BlobSha("0" * 40)))


READERS: dict[str, Callable[[bytes], Any]] = {
    "apps/ae86/garage-ae86.yaml": _entry,
    "clients.yaml": lambda data: read_clients(data.decode(), name="clients.yaml"),
    "data/ae86/team.yaml": lambda data: team_file.parse(data, team=TeamName("ae86")),
    "data/rx7/garage-rx7/end.yaml": lambda data: end_record.parse(data.decode(), name="end.yaml"),
    "data/rx7/garage-rx7/tombstone-20261128T123449.yaml": lambda data: end_record.parse(
        data.decode(), name="tombstone.yaml"
    ),
    "gitops/kinds.yaml": lambda data: read_kinds({PurePosixPath("gitops/kinds.yaml"): data}),
    "gitops/prices.yaml": lambda data: read_prices(
        data, name="prices.yaml", today=date(2026, 11, 28)
    ),
    "order.yaml": lambda data: order_file.parse(data, name="order.yaml"),
    "pack.yaml": lambda data: read_pack({PurePosixPath("pack.yaml"): data}),
    "platform.yaml": lambda data: settings.parse(data.decode(), folder=PurePosixPath("/x")),
    "templates/garage/kit.yaml": _kit,
}
NOT_READ = {"teams/ae86.yaml", "teams/rx7.yaml", "gitops/apis/garage/definition.yaml"}
"""Kubernetes' formats: Argo CD and the API server read them."""


@pytest.mark.parametrize("release", RELEASES, ids=lambda folder: folder.name)
def test_every_file_of_a_release_is_read(release: Path) -> None:
    files = {str(path.relative_to(release)) for path in release.rglob("*.yaml")}
    assert files == READERS.keys() | NOT_READ
    read = {name: reader((release / name).read_bytes()) for name, reader in READERS.items()}

    assert read["order.yaml"].ordered == {"teamName": "ae86", "stage": "stage2"}
    assert read["data/ae86/team.yaml"].limits.orders == 5
    assert read["data/rx7/garage-rx7/end.yaml"].step == "removing"
    assert len(read["data/rx7/garage-rx7/end.yaml"].objects) == 3
    assert read["platform.yaml"].ledger.name == "ledger"
    assert read["clients.yaml"][0].rights == {"read"}
    assert read["pack.yaml"].kit_names == ("garage",)
    assert ledger.kit_of(read["apps/ae86/garage-ae86.yaml"]) == "garage"


@pytest.mark.parametrize("name", READERS)
def test_a_later_format_is_refused_although_it_has_keys_that_this_release_does_not_know(
    name: str,
) -> None:
    text = (RELEASES[-1] / name).read_text().replace(API_VERSION, LATER)
    if name.startswith("apps/"):
        text = text.replace(
            "  labels:", f"  annotations: {{{ledger.FORMAT_ANNOTATION}: {LATER}}}\n  labels:"
        )
    else:
        text += "\nunknown: {key: 1}\n"

    with pytest.raises(RefusedError) as refused:
        READERS[name](text.encode())

    assert PurePosixPath(name).name.partition("-2")[0].removesuffix(".yaml") in str(
        refused.value
    ) or name.startswith("apps/")
    assert str(refused.value).endswith(
        f"format {LATER} is newer than {API_VERSION}, the newest that this Orderkit knows"
    )
    assert refused.value.hint == UPGRADE


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (lambda text: approval.parse_waiting(text, name="waiting.yaml"), {"kind": "WaitingOrder"}),
        (lambda text: approval.parse_approvals(text, name="approvals.yaml"), {"kind": "Approvals"}),
        (lambda text: definition.parse(text, name="campaigns/x.yaml"), {"kind": "Campaign"}),
        (lambda text: record.parse_record(text, name="x"), {"kind": "CampaignRecord"}),
        (lambda text: snapshot.from_text(text, name="x"), {"kind": snapshot.KIND}),
    ],
)
def test_a_later_format_of_files_that_no_release_wrote_yet_is_refused(
    read: Callable[[str], Any], data: dict[str, Any]
) -> None:
    with pytest.raises(RefusedError, match=f"format {LATER} is newer than {API_VERSION}"):
        read(json.dumps({**data, "apiVersion": LATER, "metadata": {"name": "x"}, "spec": {}}))


def test_a_later_record_of_a_lease_is_neither_read_nor_taken_for_a_broken_one() -> None:
    """A broken one may be written again; that would lose what a later Orderkit wrote."""
    now = datetime(2026, 11, 28, tzinfo=UTC)
    notes = lease.LeaseRecord(now, now, now, timedelta(days=1)).annotations()
    written = json.loads(notes[lease.RECORD])
    assert written.pop("format") == 1
    for text in (notes[lease.RECORD], json.dumps(written)):
        application = {"metadata": {"annotations": {**notes, lease.RECORD: text}}}
        assert lease.read_record(application)

    later = {**notes, lease.RECORD: json.dumps({**written, "format": 2})}
    with pytest.raises(RefusedError, match="format 2 is newer than 1"):
        lease.read_record({"metadata": {"annotations": later}})


@pytest.mark.parametrize(
    ("found", "is_newer"),
    [
        (API_VERSION, False),
        ("orderkit.dev/v1alpha2", True),
        ("orderkit.dev/v1beta1", True),
        ("orderkit.dev/v1", True),
        ("orderkit.dev/v2alpha1", True),
        ("orderkit.dev/v1alpha0", False),
        ("orderkit.dev/v", False),
        ("argoproj.io/v1", False),
        ("", False),
        (None, False),
        (["orderkit.dev/v1"], False),
    ],
)
def test_versions_are_ordered_as_kubernetes_orders_them(found: object, *, is_newer: bool) -> None:
    try:
        refuse_newer(found, "x")
    except RefusedError:
        assert is_newer
    else:
        assert not is_newer


def test_another_wrong_version_is_told_as_a_wrong_value() -> None:
    text = (RELEASES[-1] / "order.yaml").read_text().replace(API_VERSION, "orderkit.dev/one")
    with pytest.raises(InvalidInputError, match=r"order\.yaml:3: apiVersion: 'orderkit\.dev/one'"):
        READERS["order.yaml"](text.encode())
