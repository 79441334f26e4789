"""
Draw docs/delivery.svg from the layers of the reference pack; ``--check`` compares.

Names, waves and folders are the tree's own; what is delivered and waited for stands here.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.platform.delivery_tree import Layer, layers_of

PICTURE = Path(__file__).parents[1] / "docs" / "delivery.svg"
SAYS = {
    "argocd-settings": (
        "health checks, exclusions, tracking",
        "applied; also by bootstrap, before",
    ),
    "crossplane": ("its chart, where the cluster has none", "the chart's Deployments run"),
    "providers": (
        "mirrors, what runs as whom, packages",
        "each is installed, healthy, the wanted one",
    ),
    "provider-configs": ("how providers log in", "applied: a config has no health"),
    "functions": ("what compositions call", "each is installed, healthy, the wanted one"),
    "apis": ("XRDs, then Compositions, policies", "each XRD's CRD of this generation is served"),
    "ledger": ("teams, and through them orders", "nobody waits: a bad order is red alone"),
}
"""What a layer delivers, and when the next may begin."""
LINE, TOP, WIDTH = 62, 74, 960


def picture(layers: tuple[Layer, ...]) -> str:
    """Return the drawing."""
    height = TOP + LINE * len(layers) + 16
    rows = "\n".join(_row(layer, TOP + LINE * n, n) for n, layer in enumerate(layers))
    told = "; ".join(f"wave {layer.wave}: {layer.name}" for layer in layers)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" \
font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="15" role="img" aria-labelledby="t d">
  <title id="t">What Argo CD delivers, wave by wave</title>
  <desc id="d">The Application root holds one Application per layer. {told}.</desc>
  <defs>
    <marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" \
orient="auto"><path d="M0 0 10 5 0 10z" fill="#334155"/></marker>
    <style>
      .box{{fill:#fff;stroke:#334155;stroke-width:1.6}}
      .line{{stroke:#334155;stroke-width:1.6;fill:none;marker-end:url(#a)}}
      .h{{font-weight:600;fill:#0f172a}}
      .s{{font-size:12.5px;fill:#475569}}
      .v{{font-size:12.5px;fill:#b45309;font-weight:600}}
    </style>
  </defs>
  <rect width="{WIDTH}" height="{height}" fill="#ffffff"/>
  <rect class="box" x="20" y="16" width="140" height="40" rx="6"/>
  <text class="h" x="36" y="41">root</text>
  <text class="s" x="180" y="41">wave</text>
  <text class="s" x="236" y="41">layer, and what it delivers</text>
  <text class="s" x="620" y="41">the next begins when</text>
  <path d="M60 56V{TOP + LINE * len(layers) - 39}" stroke="#334155" stroke-width="1.6"/>
{rows}
</svg>
"""


def _row(layer: Layer, y: int, number: int) -> str:
    delivers, waits = SAYS[layer.name]
    folder = str(layer.folder) if layer.folder else "the ledger's teams/"
    down = f'\n  <path class="line" d="M416 {y - 14}V{y - 2}"/>' if number else ""
    return f"""\
  <path class="line" d="M60 {y + 23}H168"/>
  <text class="v" x="184" y="{y + 28}">{layer.wave}</text>
  <rect class="box" x="230" y="{y}" width="372" height="46" rx="6"/>
  <text class="h" x="244" y="{y + 19}">{escape(layer.name)}</text>
  <text class="s" x="588" y="{y + 19}" text-anchor="end">{escape(folder)}</text>
  <text class="s" x="244" y="{y + 37}">{escape(delivers)}</text>
  <text class="s" x="620" y="{y + 28}">{escape(waits)}</text>{down}"""


def main() -> int:
    """Write the drawing, or say whether it is as it should be."""
    wanted = picture(layers_of(read_folder(reference_pack())))
    if "--check" not in sys.argv[1:]:
        PICTURE.write_text(wanted)
        return 0
    if PICTURE.is_file() and PICTURE.read_text() == wanted:
        return 0
    sys.stderr.write(f"{PICTURE.name} is not as it should be: scripts/delivery_svg.py writes it\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
