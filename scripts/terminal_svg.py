"""
Record docs/terminal.svg: an order on the embedded platform, from its plan to the proof of its end.

Starts a platform of its own, types the commands, and draws what they print. Lines appear one after
the other, unless the reader's system asks for less motion. Takes half a minute.
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
import tempfile
import textwrap
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from documentedpages import ANY_PORT, environment, running_platform

ROOT = Path(__file__).parents[1]
COLUMNS, LINE_PX, CHARACTER_PX = 96, 18, 7.8
PRICES = ROOT / "gitops/prices.example.yaml"
STORY = (
    ("platform", "orderkit order garage team_name=ae86 stage=stage1 --requester user:default/eve"),
    ("platform", "orderkit plan garage-ae86 stage=stage3 --prices prices.yaml"),
    ("platform", "orderkit change garage-ae86 stage=stage3 --requester user:default/eve"),
    ("dan", "orderkit approve garage-ae86 --pull 1"),
    ("platform", "orderkit merge garage-ae86 1"),
    ("platform", "orderkit change garage-ae86 stage=stage2 --base {base}  # from before the merge"),
    ("platform", "orderkit destroy garage-ae86 --yes"),
)
"""Who types it, and the command."""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        prices = re.sub(r"date: [\d-]+", f"date: {datetime.now(UTC):%Y-%m-%d}", PRICES.read_text())
        (home / "prices.yaml").write_text(prices)
        people = ("--user=eve=ae86", "--user=dan=ae86")
        with running_platform(home, (*ANY_PORT, *people)):
            lines = recorded(home)
    (ROOT / "docs/terminal.svg").write_text(drawn(lines))
    return 0


def recorded(home: Path) -> list[str]:
    """Type the story; return prompts and output."""
    lines: list[str] = []
    base = ""
    for who, command in STORY:
        shown = command.format(base=base[:8])
        lines += [f"{'' if who == 'platform' else who}$ {shown}", *typed(home, who, shown), ""]
        base = base or newest_commit(home)
    return lines


def typed(home: Path, who: str, command: str) -> list[str]:
    """Run a command as a person; return what it prints."""
    variables = {**environment(home), "COLUMNS": str(COLUMNS), "NO_COLOR": "1"}
    if who != "platform":
        password = home / f".local/state/orderkit/credentials/user-{who}"
        variables |= {"ORDERKIT_FORGE_USER": who, "ORDERKIT_FORGE_PASSWORD": password.read_text()}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=home,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return [part for line in done.stdout.rstrip().splitlines() for part in wrapped(line)]


def wrapped(line: str) -> list[str]:
    """Break a line as a terminal does, at a blank, with its indentation."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, COLUMNS, subsequent_indent=indent, break_on_hyphens=False) or [""]


def newest_commit(home: Path) -> str:
    (line,) = typed(home, "platform", "orderkit history garage-ae86 | head -1")
    return line.split()[0]


def drawn(lines: list[str]) -> str:
    """Return the picture: one text for each line, each a little later than the one before."""
    height = LINE_PX * (len(lines) + 1)
    texts, delay_s = [], 0.0
    for number, line in enumerate(lines, 1):
        is_typed = line.partition(" ")[0].endswith("$")
        delay_s += 1.2 if is_typed else 0.08
        look = "typed" if is_typed else "said"
        texts.append(
            f'<text x="12" y="{number * LINE_PX}" class="{look}"'
            f' style="animation-delay:{delay_s:.2f}s">{html.escape(line)}</text>'
        )
    width = round(CHARACTER_PX * (COLUMNS + 4))
    return _SVG.format(width=width, height=height, texts="\n".join(texts))


_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">
<title>A terminal: an order is placed, planned with its price, changed, and ended with proof</title>
<style>
rect {{ fill: #1b1f24 }}
text {{ font: 13px ui-monospace, "DejaVu Sans Mono", Consolas, monospace; fill: #d6dbe1;
  white-space: pre; opacity: 0; animation: shown .01s forwards }}
.typed {{ fill: #7ee2a8 }}
@keyframes shown {{ to {{ opacity: 1 }} }}
@media (prefers-reduced-motion: reduce) {{ text {{ opacity: 1; animation: none }} }}
</style>
<rect width="100%" height="100%" rx="8"/>
{texts}
</svg>
"""

if __name__ == "__main__":
    sys.exit(main())
