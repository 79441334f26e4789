"""
Campaigns that change files: planned over many orders, and XRs moved to another version.

The peer of a template update is copier's update of one repository with the same files, in the same
run. It also writes the files, which a plan does not.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from bench.figure import Figure, size, timed_s
from bench.rendering import GARAGE_VALUES, SKELETON, translated
from ground.names import BlobSha, CommitSha, OrderId
from kubeschema.validate import Validator
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.campaign.definition import Campaign, TemplateFiles, What, Which
from orderkit.core.kit.converting import converter
from orderkit.core.kit.pack import read_pack
from orderkit.flows.campaign import planning
from orderkit.flows.campaign.version_work import moved
from orderkit.flows.composing.published_pack import needed_files
from orderkit.flows.order.live_order import XrFile
from orderkit.flows.platform import Platform
from orderkit.ports.requesters import Requester

FILES = 10
PEER_RUNS, MIGRATED = size((5, 1_000), (1, 3))
_PAGE = "# ${{ values.order }}, page PAGE\n\nStage: ${{ values.spec.stage }}\n\nLINE\n"
_GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.org")
_OLD, _NEW = "v1alpha1", "v1beta1"
_FIELDS: dict[str, dict[str, Any]] = {
    _OLD: {"laps": {"type": "integer"}, "level": {"type": "string", "enum": ["low", "high"]}},
    _NEW: {
        "race": {"type": "object", "properties": {"laps": {"type": "integer"}}},
        "grade": {"type": "string", "enum": ["B", "A"]},
    },
}
_CONVERSION = {
    "from": _OLD,
    "to": _NEW,
    "move": {"laps": "race.laps"},
    "map": {"level": {"to": "grade", "values": [["low", "B"], ["high", "A"]]}},
}


def ten_files(pack: Path) -> None:
    """Give the garage's skeleton pages, so that an order has ten generated files."""
    pages = pack / SKELETON / "docs"
    pages.mkdir()
    for number in range(FILES - 4):
        text = _PAGE.replace("PAGE", str(number)).replace("LINE", "As it was.")
        (pages / f"page-{number}.md").write_text(text)
    assert sum(path.is_file() for path in (pack / SKELETON).rglob("*")) == FILES


def change_pages(skeleton: Path) -> None:
    """Change a line of every page."""
    for page in (skeleton / "docs").iterdir():
        page.write_text(page.read_text().replace("As it was.", "As it is now."))


def template_figures(
    platform: Platform, folder: Path, orders: int, who: Requester
) -> Iterator[Figure]:
    """Publish other pages, and plan that all orders follow; compare with copier."""
    pack = folder / "pack"
    peer_s = _copier_s(pack / SKELETON, folder / "copier")
    change_pages(pack / SKELETON)
    file = folder / "state" / "platform.yaml"
    upgrade = ["platform", "upgrade", "--pack", str(pack), "--platform", str(file)]
    subprocess.run(
        [sys.executable, "-m", "orderkit", *upgrade], check=True, stdout=subprocess.DEVNULL
    )
    campaign = Campaign(
        name="follow",
        reason="bench",
        what=What(template=TemplateFiles()),
        which=Which(kit="garage"),
    )
    plans: list[planning.CampaignPlan] = []
    took_s = timed_s(lambda: plans.append(planning.plan_campaign(platform, campaign, who)))
    assert plans[0].counts == {"direct": orders}, plans[0].folds[:3]
    name = f"campaign.template.plan.{orders}"
    yield Figure(name, took_s, "s", aim="<= 20")
    yield Figure(
        f"{name}.an-order",
        took_s / orders * 1000,
        "ms",
        peer="copier's update of one repository with the same files (it writes them)",
        peer_value=peer_s * 1000,
        ratio=peer_s / (took_s / orders),
        aim=">= 50",
        aim_of="ratio",
    )


def _copier_s(skeleton: Path, folder: Path) -> float:
    """Time copier's update of a repository that was made from the skeleton, in copier's words."""
    from copier import run_copy, run_update

    template, made = folder / "template", folder / "made"
    for path in sorted(skeleton.rglob("*")):
        place = template / path.relative_to(skeleton)
        if path.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(translated(path.read_text(), prefix=""))
    questions = {n: {"type": "yaml", "default": value} for n, value in GARAGE_VALUES.items()}
    options = {"_templates_suffix": "", "_envops": {"keep_trailing_newline": True}}
    (template / "copier.yml").write_text(json.dumps({**questions, **options}))
    (template / "{{ _copier_conf.answers_file }}").write_text(
        "{{ _copier_answers | to_nice_yaml }}"
    )
    _commit(template, "v1.0.0", first=True)
    run_copy(str(template), made, defaults=True, quiet=True, vcs_ref="v1.0.0")
    _commit(made, "made", first=True)
    change_pages(template)
    _commit(template, "v2.0.0")

    def back() -> None:
        _git(made, "reset", "--quiet", "--hard", "made")

    def update() -> None:
        run_update(made, defaults=True, overwrite=True, quiet=True)
        assert "As it is now." in (made / "docs" / "page-0.md").read_text()

    def once_s() -> float:
        back()
        return timed_s(update)

    return sorted(once_s() for _ in range(PEER_RUNS))[PEER_RUNS // 2]


def _commit(folder: Path, tag: str, *, first: bool = False) -> None:
    if first:
        _git(folder, "init", "--quiet")
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", tag)
    _git(folder, "tag", tag)


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run([*_GIT, *arguments], cwd=folder, check=True)


def version_figures(folder: Path) -> Iterator[Figure]:
    """Move the XRs of many files to another version, each with its proof."""
    pack = folder / "versions"
    _two_versions(pack)
    kit = read_pack(needed_files(read_folder(pack))).kit("garage")
    way = converter(kit, _OLD, _NEW, Validator(kit.xrd))
    files = {f"garage-{number:04d}": _xr_file(f"garage-{number:04d}") for number in range(MIGRATED)}

    def migrate() -> None:
        for order, file in files.items():
            data, xr = moved(way, OrderId(order), file)
            assert xr["spec"]["race"] == {"laps": 12}
            assert b"# as ordered" in data

    yield Figure(f"campaign.version.{MIGRATED}", timed_s(migrate), "s", aim="<= 10")


def _two_versions(pack: Path) -> None:
    """Give a copy of the reference pack's garage a second version and a conversion to it."""
    source = reference_pack()
    pack.mkdir()
    shutil.copy(source / "pack.yaml", pack)
    for part in ("templates", "stations", "gitops"):
        shutil.copytree(source / part, pack / part)
    definition = pack / "gitops/apis/garage/definition.yaml"
    xrd = yaml.safe_load(definition.read_text())
    (old,) = xrd["spec"]["versions"]
    new = json.loads(json.dumps(old)) | {"name": _NEW}
    old["referenceable"] = False
    for version in (old, new):
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"].update(_FIELDS[version["name"]])
    xrd["spec"]["versions"] = [old, new]
    definition.write_text(yaml.safe_dump(xrd, sort_keys=False))
    kit = pack / "templates/garage/kit.yaml"
    found = yaml.safe_load(kit.read_text())
    found["spec"]["conversions"] = [_CONVERSION]
    kit.write_text(yaml.safe_dump(found, sort_keys=False))


def _xr_file(order: str) -> XrFile:
    team = order.partition("-")[2]
    text = (
        f"apiVersion: blog.opsbogus.dev/{_OLD}\nkind: XGarage\nmetadata:\n  name: {order}\nspec:\n"
        f"  teamName: t{team}\n  stage: stage2   # as ordered\n  laps: 12\n  level: high\n"
    )
    path, data = PurePosixPath("manifests/xgarage.yaml"), text.encode()
    xr = yaml.safe_load(text)
    return XrFile(CommitSha("0" * 40), path, data, BlobSha("0" * 40), 0, (), xr)
