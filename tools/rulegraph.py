"""Convert Snakemake's graph of rules, from standard input, into the graph of docs/dag.md.

The rules of all recipes become one box. Targets are left out, and
colours show the needs of a rule in the page's lists. `make rulegraph` runs it.
"""

import re
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "dag.md"
COLOURS = {"GPU": "#f6c9b0", "network": "#bcd9ee", "CPU": "#e9e9e4"}
LEGEND = " &nbsp; ".join(
    f'<font color="{colour}">&#9632;</font> {need}' for need, colour in COLOURS.items()
)
STYLE = f"""\
graph [bgcolor=white, fontname=sans, fontsize=12, label=<{LEGEND}>, labelloc=t]
graph [nodesep=0.15, ranksep=0.35]
node [shape=box, style="rounded,filled", penwidth=0, fontname=sans, fontsize=11, height=0.3]
edge [color="#77777f", arrowsize=0.6]"""


def needs_of(page: str) -> dict[str, str]:
    """Return the boxes of the page's lists, with their needs."""
    items = re.findall(r"^- \*\*(\w+)\*\*: (.*(?:\n  .*)*)", page, flags=re.MULTILINE)
    return {box: need for need, text in items for box in re.findall(r"`([\w{}]+)`", text)}


def box_of(rule: str) -> str:
    """Return the name of the box of `rule`."""
    return "train_{recipe}" if rule.startswith("train_") else rule


def as_dot(rule_graph: str, needs: dict[str, str]) -> str:
    """Return Snakemake's `rule_graph` with the boxes `needs`, for graphviz."""
    rules = re.findall(r'^\s*(\d+)\[label = "(\w+)"', rule_graph, flags=re.MULTILINE)
    boxes = {number: box_of(rule) for number, rule in rules}
    pairs = re.findall(r"(\d+) -> (\d+)", rule_graph)
    arrows = {
        (boxes[first], boxes[second]) for first, second in pairs if boxes[second] in needs
    }
    return "\n".join(
        [
            "digraph rules {",
            STYLE,
            *(f'"{box}" [fillcolor="{COLOURS[need]}"]' for box, need in needs.items()),
            *(f'"{first}" -> "{second}"' for first, second in sorted(arrows)),
            "}",
        ]
    )


if __name__ == "__main__":
    print(as_dot(sys.stdin.read(), needs_of(PAGE.read_text(encoding="utf-8"))))
