"""Write the jobs of the paper's targets into docs/reproduce.md."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from study.resources import MINUTES
from tools.estimate_cost import jobs_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reproduce.md"
WHOLE = str(ROOT / "config" / "whole_paper.yaml")
TARGETS = {
    "table": ["results/tables/oracle_vs_methods.tex"],
    "study": ["study"],
    "all": ["all", "--configfile", WHOLE],
}
BEGIN, END = "<!-- jobs: written by tools/jobs_table.py -->\n", "<!-- end of jobs -->"


def jobs_table(plans: Mapping[str, str]) -> str:
    """Return the jobs that need a GPU, a download or the judge, from dry runs by `TARGETS`."""
    counts = {}
    for target in TARGETS:
        rules = (
            re.sub(r"^train_\w+", "train_adapters", job.rule) for job in jobs_of(plans[target])
        )
        counts[target] = Counter(rule for rule in rules if rule in MINUTES)
    lines = [
        "| rule | `oracle_vs_methods.tex` | default target | whole paper |",
        "|---|--:|--:|--:|",
    ]
    for rule in MINUTES:
        if counts["all"][rule]:
            numbers = " | ".join(f"{counts[target][rule]:,}" for target in TARGETS)
            lines.append(f"| `{rule}` | {numbers} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Plan the targets and write their jobs into the page."""
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--cores", "1", "--snakefile"]
    command += [str(ROOT / "Snakefile")]
    plans = {
        name: subprocess.run(
            [*command, *words], capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
        for name, words in TARGETS.items()
    }
    text = PAGE.read_text(encoding="utf-8")
    head, tail = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    PAGE.write_text(head + jobs_table(plans) + tail, encoding="utf-8")


if __name__ == "__main__":
    main()
