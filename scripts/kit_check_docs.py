"""
Write docs/kit-check.md from the table of rules that the check enforces; ``--check`` only compares.

Run it after a change in ``core/check/rule_codes.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from compositions.simulation import ROUNDS_MAX
from orderkit_workshop.check.behaviour_rule_codes import PipelineRule, SinceRule, markdown
from orderkit_workshop.check.rule_codes import KitRule
from orderkit_workshop.check.trial_runs import VARIATIONS_MAX

PAGE = Path(__file__).parents[1] / "docs" / "kit-check.md"

INTRODUCTION = f"""\
# What `orderkit kit check` checks

`scripts/kit_check_docs.py` generates this page from the table that the check enforces.

```shell
orderkit kit check                     # all kits of the pack in this folder
orderkit kit check garage --strict     # warnings fail too
orderkit kit check --since origin/main # also: would live orders break?
orderkit kit check --json              # or --sarif, for code hosts
```

Exit code 0 means no errors. 1 means errors, or with `--strict` also warnings. Each finding has file, line, the rule's code, a sentence
and a hint. Codes are stable. Crossplane and the API server accept most of these faults; orders then fail, or are lost, later.

**The pipeline is run.** The check takes each example of `kit.yaml` (or an order made up from the XRD, if there is none) and up to
{VARIATIONS_MAX} variations of the first one: other enum values, booleans, optional fields given and left out, names as long as they can
get. Each goes through each Composition until nothing changes any more, at most {ROUNDS_MAX} rounds. What a round wants exists in the next
round and is ready. Everything below `gitops/` answers requirements. At the end the check removes facts and flips readiness, to see
whether anything would be deleted.

- Stations run in [processes of their own](station-api.md#limits-of-a-station), without your environment, files and
  network.
- If a station's answers could depend on the order of Python's sets, it also runs in four more processes with other hash seeds.
- A Composition with a step that is not Python (go-templating, KCL, ...) is checked as it is written, and not run.

**Composed resources** are judged by every schema that the pack has of their kind: fields that do not exist, types, required fields,
enums, rules ([schemas](schemas.md)).

**Not checked:** admission policies of your cluster, what providers do with composed resources, and cost limits of CEL.
For Crossplane's rights, the check guesses the plural of a kind as Kubernetes does, unless `kit.yaml` gives `resource`. YAML style is
that of the pack's `.yamllint`, or a default. Skeletons and generated files are left out.

"""  # noqa: E501 - the page's lines


SINCE = """\
## Rules of `--since REF`

```shell
orderkit kit check --since origin/main
```

compares every kit with what it was at a commit, tag or branch. Would live orders break, move, or lose what they hold? Schemas
are compared version by version, field by field. The old examples (and their variations) are checked against the new XRD and run through
both pipelines; composed resources are compared by their logical names. What patterns and rules allow cannot be compared: a changed
one counts as tighter. The check does not see the orders that really live (run `orderkit validate` over them).

"""  # noqa: E501 - the page's lines


def page() -> str:
    """Return the whole page."""
    kit_rules = markdown((*KitRule, *PipelineRule))
    return f"{INTRODUCTION}## Rules\n\n{kit_rules}\n\n{SINCE}{markdown(SinceRule)}\n"


def main() -> int:
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text)
    elif not PAGE.is_file() or PAGE.read_text() != text:
        print(f"{PAGE.name} is stale: run scripts/kit_check_docs.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
