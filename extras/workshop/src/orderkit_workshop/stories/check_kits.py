"""
Check the kits of a pack folder: every rule of ``check``, plus runs in other processes.

Reads the folder, loads the stations (they run confined), judges each kit, and runs stations whose
order could follow Python's hashes in processes with other seeds. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ground.errors import InvalidInputError, OrderkitError
from ground.objects.kube_objects import Kind, first_and_more
from kubeschema.validate import Finding
from kubeschema.validate.findings import FindingSeverity, Located
from orderkit.core.kit.checked_kits import checked_kits
from orderkit.core.kit.order_kinds import kinds
from orderkit.core.kit.pack import Pack, read_pack
from orderkit_workshop.check import DEFAULT_STYLE, Checked, KitUnderCheck, PackFacts, check_kit
from orderkit_workshop.check.behaviour_rule_codes import PipelineRule
from orderkit_workshop.check.file_checks import check_pack_files
from orderkit_workshop.check.kit_under_check import finding_at
from orderkit_workshop.check.pipeline_text_checks import may_depend_on_hashing
from orderkit_workshop.check.since_checks import check_since, kit_is_gone
from orderkit_workshop.check.trial_runs import differing_parts
from orderkit_workshop.generate.order_policy import order_policies
from orderkit_workshop.ports.pack_folder import PackFolder

SEEDS = ("1", "2", "3", "4")
"""Two entries of a set swap with every second seed, so four seeds rarely miss it."""
_STYLE_FILES = (".yamllint", ".yamllint.yaml", ".yamllint.yml")


@dataclass(frozen=True, slots=True)
class PackVerdict:
    """What was found in all kits, by kit, file and line. Files are relative to the pack."""

    kits: tuple[str, ...]
    findings: tuple[Located, ...]
    runs: int
    """Orders that were run through a pipeline."""

    def count(self, severity: FindingSeverity) -> int:
        """Return the number of findings of a severity."""
        return sum(severity_of(entry) is severity for entry in self.findings)


def severity_of(entry: Located) -> FindingSeverity:
    """Return the severity of a finding."""
    return entry.about.severity if isinstance(entry.about, Finding) else FindingSeverity.NOTE


def check_pack(
    folder: PackFolder,
    kits: Sequence[str] = (),
    *,
    since: str | None = None,
    embedded: Callable[[Kind], bool] | None = None,
) -> PackVerdict:
    """
    Check kits of a pack folder.

    Args:
        kits: Names; empty: all of the pack.
        since: A commit, tag or branch to compare the kits with.
        embedded: Whether the embedded cluster serves a kind of Kubernetes' own.

    Raises:
        NotFoundError: The pack has no kit of that name, or git no such commit with a pack.
        InvalidInputError: The pack or its .yamllint cannot be read.
        ProbeError: A process that runs pipelines failed.
    """
    files = folder.files(docs=True)
    names = _requested_kits(read_pack(files), kits)
    facts = PackFacts(files, folder.stations(), folder.programs(files), embedded)
    style = style_of(folder)
    doubtful = [name for name in names if _is_doubtful(name, facts)]
    # Python orders sets by hashes that differ from process to process: a station that lets this
    # order through changes what it composes whenever it is restarted
    with folder.fingerprints(doubtful, SEEDS if doubtful else ()) as fingerprints:
        try:
            checked = [check_kit(KitUnderCheck(name, facts), style=style) for name in names]
        except ValueError as error:
            raise InvalidInputError(
                ".yamllint", None, f"is refused: {error}", hint="correct .yamllint, or delete it"
            ) from error
        differing = differing_parts(fingerprints())
    findings: list[Located] = []
    for kit in checked:
        own = (*kit.findings, *_differences(kit, differing.get(kit.kit, {})))
        findings += [entry for entry in own if entry not in findings]  # kits share files
    if not kits:
        findings += _together(read_pack(files), facts)
    if since is not None:
        findings += _changes(folder, since, facts, names, whole_pack=not kits)
    return PackVerdict(tuple(names), tuple(findings), sum(len(kit.runs) for kit in checked))


def _together(pack: Pack, facts: PackFacts) -> list[Located]:
    """Check the files generated from all kits."""
    try:
        kits = checked_kits(pack)
        generated = {**kinds(pack.name, kits), **order_policies(facts.files, kits)}
        return list(check_pack_files(facts.files, generated))
    # unreadable kits are reported elsewhere
    except OrderkitError:
        return []


def _changes(
    folder: PackFolder, ref: str, facts: PackFacts, names: Sequence[str], *, whole_pack: bool
) -> list[Located]:
    """
    Compare kits with an earlier commit.

    Args:
        whole_pack: `names` are all kits of the pack: what is not among them is gone.
    """
    old = PackFacts(*folder.at_commit(ref))
    changes: list[Located] = []
    for name in read_pack(old.files).kit_names:
        if name in names:
            changes += check_since(KitUnderCheck(name, old), KitUnderCheck(name, facts))
        elif whole_pack:
            changes.append(kit_is_gone(KitUnderCheck(name, old), ref))
    return changes


def _requested_kits(pack: Pack, kits: Sequence[str]) -> list[str]:
    for name in kits:
        if name not in pack.kit_names:
            raise pack.unknown_kit(name)
    return list(dict.fromkeys(kits)) or list(pack.kit_names)


def style_of(folder: PackFolder) -> str:
    """Return the pack's configuration of yamllint."""
    for name in _STYLE_FILES:
        style = folder.file(PurePosixPath(name))
        if style is not None:
            return style.decode(errors="replace")
    return DEFAULT_STYLE


def _is_doubtful(kit: str, facts: PackFacts) -> bool:
    """Say whether a second process could show something about the kit's stations."""
    names = {
        str(step.get("input", {}).get("name"))
        for doc in KitUnderCheck(kit, facts).compositions
        for step in doc.manifest.get("spec", {}).get("pipeline") or ()
        if isinstance(step, dict) and isinstance(step.get("input"), dict)
    }
    folders = [PurePosixPath("stations", name.partition("/")[0]) for name in names]
    return any(
        path.suffix == ".py"
        and any(path.is_relative_to(folder) for folder in folders)
        and may_depend_on_hashing(data)
        for path, data in facts.files.items()
    )


def _differences(kit: Checked, differing: dict[str, list[str]]) -> Iterator[Located]:
    reported: set[str] = set()
    for run in kit.runs:
        parts = first_and_more(differing.get(run.key, ()))
        if parts and parts not in reported:
            reported.add(parts)
            message = f"{run.order.label}: {parts} differs in another process"
            yield finding_at(PipelineRule.NOT_DETERMINISTIC, run.doc, "spec.pipeline", message)
