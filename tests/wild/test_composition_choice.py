"""Kits with several Compositions: an order chooses one, and a change moves it to another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from commands import Command, in_process

from ground.names import RepoId
from ground.objects.kube_objects import CONFIG_MAP, Kind, ObjectKey
from orderkit.cli.main import run
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

GROUP = "wild.example.org"


@dataclass(frozen=True)
class Shop:
    """A kit of two Compositions, as one kind of XRD declares it."""

    name: str
    api: str
    path: str
    """The field that names the Composition."""

    @property
    def kind(self) -> Kind:
        return Kind(GROUP, "v1", f"X{self.name.capitalize()}")

    def xrd(self, **spec: Any) -> dict[str, Any]:
        scope = {"scope": "Cluster"} if self.api == "v2" else {}
        fields = {"size": {"type": "string", "default": "small"}}
        schema = {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": fields}},
        }
        names = {"kind": self.kind.kind, "plural": f"x{self.name}s"}
        version = {"name": "v1", "served": True, "referenceable": True}
        return {
            "apiVersion": f"apiextensions.crossplane.io/{self.api}",
            "kind": "CompositeResourceDefinition",
            "metadata": {"name": f"x{self.name}s.{GROUP}"},
            "spec": {
                "group": GROUP,
                "names": names,
                **scope,
                **spec,
                "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
            },
        }

    def composition(self, cloud: str, *parts: str) -> dict[str, Any]:
        resources = [
            {
                "name": part,
                "base": {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"namespace": "default"},
                    "data": {"cloud": cloud},
                },
                "patches": [
                    {
                        "fromFieldPath": "metadata.name",
                        "toFieldPath": "metadata.name",
                        "transforms": [
                            {"type": "string", "string": {"type": "Format", "fmt": f"%s-{part}"}}
                        ],
                    }
                ],
                "readinessChecks": [{"type": "None"}],
            }
            for part in parts
        ]
        patches = {
            "step": "parts",
            "functionRef": {"name": "function-patch-and-transform"},
            "input": {
                "apiVersion": "pt.fn.crossplane.io/v1beta1",
                "kind": "Resources",
                "resources": resources,
            },
        }
        return {
            "apiVersion": "apiextensions.crossplane.io/v1",
            "kind": "Composition",
            "metadata": {"name": f"{self.name}-{cloud}"},
            "spec": {
                "compositeTypeRef": {"apiVersion": f"{GROUP}/v1", "kind": self.kind.kind},
                "mode": "Pipeline",
                "pipeline": [patches],
            },
        }


MODERN = Shop("shop", "v2", "crossplane.compositionRef.name")
LEGACY = Shop("stall", "v1", "compositionRef.name")
SHOPS = (MODERN, LEGACY)
KIOSK = Shop("kiosk", "v2", "crossplane.compositionRef.name")
"""Its XRs keep the revision that they got."""
BOOTH = Shop("booth", "v2", "crossplane.compositionRef.name")
"""Its platform chooses."""
CHOSEN = {"CLOUD": "booth-moon"}


def import_shop(shop: Shop, pack: Path, folder: Path, **spec: Any) -> int:
    texts = [
        shop.xrd(**spec),
        shop.composition("sun", "shared", "sunny"),
        shop.composition("moon", "shared", "lunar"),
    ]
    file = folder / f"{shop.name}.yaml"
    file.write_text(yaml.safe_dump_all(texts))
    arguments = ["--name", shop.name, "--pack", str(pack), "--json"]
    is_open = "enforcedCompositionRef" not in spec
    chosen = ("--composition", f"{shop.name}-sun") if is_open else ()
    return run(["kit", "import", str(file), *chosen, *arguments])


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shops")
    assert run(["init", str(folder / "mine"), "--no-git"]) == 0
    for shop in SHOPS:
        assert import_shop(shop, folder / "mine", folder) == 0
    pinned = {"defaultCompositionUpdatePolicy": "Manual"}
    assert import_shop(KIOSK, folder / "mine", folder, **pinned) == 0
    assert import_shop(BOOTH, folder / "mine", folder) == 0
    file = folder / "mine/templates/booth/kit.yaml"
    file.write_text(f"{file.read_text()}  hidden:\n    {BOOTH.path}: {{from: CLOUD}}\n")
    assert run(["kit", "generate", "booth", "--pack", str(folder / "mine")]) == 0
    return folder / "mine"


@pytest.fixture(scope="module")
def shops(pack: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    state = tmp_path_factory.mktemp("shops-state") / "state"
    request = EmbeddedRunRequest(
        state, pack, Ports(0, 0, 0, 0), ("ae86",), values={"CLOUD": "booth-moon"}
    )
    with running(request, on_step=lambda *_: None) as started:
        yield started


@pytest.fixture
def orderkit(shops: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(shops.embedded.state.folder / "platform.yaml", capsys)


def parts(platform: Running, order: str) -> dict[str, str]:
    """Return the clouds of an order's parts, by their names in the Composition."""
    found = {
        part: platform.platform.cluster.get(ObjectKey(CONFIG_MAP, f"{order}-{part}", "default"))
        for part in ("shared", "sunny", "lunar")
    }
    return {part: manifest["data"]["cloud"] for part, manifest in found.items() if manifest}


def in_git(platform: Running, shop: Shop, order: str) -> dict[str, Any]:
    file = PurePosixPath("manifests", f"{shop.kind.kind.lower()}.yaml")
    found = platform.platform.forge.read(RepoId("ae86", order), file, "main")
    assert found is not None
    spec: dict[str, Any] = yaml.safe_load(found.text)["spec"]
    return spec


def nested(path: str, value: str) -> dict[str, Any]:
    head, _, rest = path.partition(".")
    return {head: nested(rest, value) if rest else value}


@pytest.mark.parametrize("shop", SHOPS, ids=lambda shop: shop.api)
def test_an_import_offers_every_composition(shop: Shop, pack: Path) -> None:
    kit = yaml.safe_load((pack / f"templates/{shop.name}/kit.yaml").read_text())
    template = yaml.safe_load((pack / f"templates/{shop.name}/template.yaml").read_text())
    offered = [f"{shop.name}-sun", f"{shop.name}-moon"]
    field = template["spec"]["parameters"][0]
    for step in shop.path.split("."):
        field = field["properties"][step]

    assert kit["spec"]["compositions"] == [{"name": name} for name in offered]
    assert (field["enum"], field["title"]) == (offered, "Composition")
    assert f"Default: {offered[0]}." in field["description"]


def test_kit_check_and_kit_test_accept_what_was_imported(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = pack / "tests/kits/shop/on-the-moon/scenario.yaml"
    scenario.parent.mkdir()
    values = {"name": "one", "team": "ae86", **nested(MODERN.path, "shop-moon")}
    scenario.write_text(yaml.safe_dump({"reason": "it goes to the moon", "values": values}))
    capsys.readouterr()

    tested = run(["kit", "test", "shop", "--update", "--pack", str(pack)])
    told = capsys.readouterr()
    checked = run(["kit", "check", "--pack", str(pack)])
    findings = capsys.readouterr().out
    composed = (scenario.parent / "expected/resources.yaml").read_text()
    assert (tested, checked) == (0, 0), (told, findings)
    assert ("lunar" in composed, "sunny" in composed) == (True, False)


@pytest.mark.parametrize("shop", SHOPS, ids=lambda shop: shop.api)
def test_an_order_that_chooses_gets_it_and_a_change_moves_it(
    shop: Shop, shops: Running, orderkit: Command
) -> None:
    order = f"{shop.name}-chosen"
    sun, moon = (f"{shop.name}-{cloud}" for cloud in ("sun", "moon"))

    placed = orderkit("order", shop.name, "name=chosen", "team=ae86", f"composition={moon}")

    assert placed.code == 0, placed.err
    assert in_git(shops, shop, order) == {"size": "small", **nested(shop.path, moon)}
    assert parts(shops, order) == {"shared": "moon", "lunar": "moon"}

    planned = orderkit("plan", order, f"composition={sun}")

    assert planned.code == 10
    assert f"Composition {sun} assembles the order from then on" in planned.out
    assert "deletes 1 parts that only the other one makes, creates 1" in planned.out

    changed = orderkit("change", order, f"composition={sun}")

    assert changed.code == 0, changed.err
    assert in_git(shops, shop, order) == {"size": "small", **nested(shop.path, sun)}
    assert parts(shops, order) == {"shared": "sun", "sunny": "sun"}
    assert orderkit("status", order, "--json").json["phase"] == "Ready"


@pytest.mark.parametrize("shop", SHOPS, ids=lambda shop: shop.api)
def test_an_order_that_names_none_gets_the_default(
    shop: Shop, shops: Running, orderkit: Command
) -> None:
    placed = orderkit("order", shop.name, "name=plain", "team=ae86")

    assert placed.code == 0, placed.err
    assert in_git(shops, shop, f"{shop.name}-plain") == {"size": "small"}
    assert parts(shops, f"{shop.name}-plain") == {"shared": "sun", "sunny": "sun"}


@pytest.mark.parametrize("shop", SHOPS, ids=lambda shop: shop.api)
def test_what_the_kit_does_not_offer_is_refused_everywhere(
    shop: Shop, shops: Running, orderkit: Command
) -> None:
    orderkit("order", shop.name, "name=steady", "team=ae86")

    ordered = orderkit("order", shop.name, "name=mars", "team=ae86", "composition=mars")
    changed = orderkit("change", f"{shop.name}-steady", f"composition={shop.name}-mon")

    assert ordered.code == 2
    assert "mars" in ordered.err
    assert changed.code == 2
    assert f'"{shop.name}-mon" is not one that kit {shop.name} offers' in changed.err
    assert f"did you mean '{shop.name}-moon'?" in changed.err
    assert in_git(shops, shop, f"{shop.name}-steady") == {"size": "small"}


def test_a_platform_value_chooses(shops: Running, orderkit: Command) -> None:
    placed = orderkit("order", "booth", "name=hidden", "team=ae86")
    changed = orderkit("change", "booth-hidden", "composition=booth-sun")

    assert placed.code == 0, placed.err
    assert in_git(shops, BOOTH, "booth-hidden") == {
        "size": "small",
        **nested(BOOTH.path, "booth-moon"),
    }
    assert parts(shops, "booth-hidden") == {"shared": "moon", "lunar": "moon"}
    assert (changed.code, "the platform sets this value" in changed.err) == (4, True)


def test_a_move_of_an_order_with_a_pinned_revision_says_that_nothing_happens(
    orderkit: Command,
) -> None:
    """Crossplane composes with the pinned revision, whatever Composition it belongs to."""
    assert orderkit("order", "kiosk", "name=pinned", "team=ae86").code == 0

    planned = orderkit("plan", "kiosk-pinned", "composition=kiosk-moon")

    assert "the order stays as it is, because compositionUpdatePolicy Manual pins it" in planned.out


def test_a_push_that_names_another_composition_is_told(
    shops: Running, orderkit: Command, tmp_path: Path
) -> None:
    xr = {
        "apiVersion": f"{GROUP}/v1",
        "kind": MODERN.kind.kind,
        "metadata": {"name": "shop-pushed"},
        "spec": nested(MODERN.path, "somebody-elses"),
    }
    file = tmp_path / "xr.yaml"
    file.write_text(yaml.safe_dump(xr))
    platform, order = shops.platform, "shop-pushed"
    assert orderkit("order", "shop", "name=pushed", "team=ae86").code == 0
    forge, repository = platform.forge, RepoId("ae86", order)
    path = PurePosixPath("manifests/xshop.yaml")
    found = forge.read(repository, path, "main")
    assert found is not None
    operation = Operation("push-another", "user:default/mallory", "name another Composition")
    forge.write(repository, [FileChange(path, file.read_bytes(), found.sha)], operation)

    told = orderkit("status", order)

    assert 'Composition "somebody-elses" is not one that kit shop offers' in told.out


def test_an_order_never_loses_the_map_that_crossplane_writes_into(
    shops: Running,
    orderkit: Command,
    tmp_path: Path,
    pack: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Argo CD would take Crossplane's list of the order's parts away with it."""
    order, path = "shop-bare", PurePosixPath("manifests/xshop.yaml")
    assert orderkit("order", "shop", "name=bare", "team=ae86").code == 0
    assert orderkit("change", order, "composition=shop-moon").code == 0
    commit = orderkit("history", order, "--json").json["entries"][0]["commit"]

    reverted = orderkit("revert", order, commit)

    assert reverted.code == 2, reverted.out
    assert "Crossplane's list of the order's parts would go with it" in reverted.err
    forge, repository = shops.platform.forge, RepoId("ae86", order)
    file = forge.read(repository, path, "main")
    record = forge.read(repository, PurePosixPath(".orderkit/order.yaml"), "main")
    assert file is not None
    assert record is not None
    for name, xr in {"old": file.text, "new": _bare(file.text)}.items():
        for place, text in {path: xr, record.path: record.text}.items():
            (tmp_path / name / place).parent.mkdir(parents=True)
            (tmp_path / name / place).write_text(text)
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    capsys.readouterr()
    assert run(["validate", new, "--old", old, "--pack", str(pack)]) == 1
    assert "put spec.crossplane back" in capsys.readouterr().out
    back = orderkit("change", order, "composition=shop-sun")
    assert back.code == 0, back.err
    assert parts(shops, order) == {"shared": "sun", "sunny": "sun"}


def _bare(text: str) -> str:
    xr = yaml.safe_load(text)
    del xr["spec"]["crossplane"]
    return yaml.safe_dump(xr)


def test_a_kit_that_enforces_one_offers_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack = tmp_path / "mine"
    assert run(["init", str(pack), "--no-git"]) == 0
    capsys.readouterr()

    code = import_shop(MODERN, pack, tmp_path, enforcedCompositionRef={"name": "shop-moon"})

    answer = json.loads(capsys.readouterr().out)
    kit = yaml.safe_load((pack / "templates/shop/kit.yaml").read_text())
    assert code == 0
    assert "compositions" not in kit["spec"]
    told = "\n".join(answer["next"])
    assert (
        "orders get Composition shop-moon, which the XRD enforces; the pack also has shop-sun, "
        "and no order gets that" in told
    )
