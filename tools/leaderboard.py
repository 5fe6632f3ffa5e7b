"""Write what each estimator scored in a study into docs/estimators.md, and show its figure.

`python -m tools.leaderboard results/atlas atlas` takes both from what its target `all` made.
"""

import shutil
import sys
from pathlib import Path

import pandas as pd

from persistcal.store import artifacts
from study.config_files import over_defaults

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "estimators.md"
FIGURE = ROOT / "docs" / "images" / "leaderboard.png"
BEGIN, END = "<!-- scores -->\n", "<!-- end of scores -->\n"
HEAD = "| estimator | full AUC | contrast AUC | falls by | Δ₀ᵇ |\n|---|--:|--:|--:|--:|\n"


def rows(intervals: pd.DataFrame, labels: dict[str, str]) -> str:
    """Return a Markdown row for each estimator of `labels`, the highest contrast AUC first.

    Those that were trained on another dataset than the evaluated one are left out.
    """
    own = intervals[intervals["train_dataset"] == intervals["dataset"]]
    own = own[(own["conditioning"] == "odds") & own["estimator"].isin(labels)]
    key = zip(own["scope"], own["metric"], own["estimator"], strict=True)
    scores = dict(zip(key, own.to_dict("records"), strict=True))

    def cell(scope: str, metric: str, name: str) -> tuple[float, str]:
        row = scores[scope, metric, name]
        ends = f"[{row['lower_2_5pct']:.3f}, {row['upper_97_5pct']:.3f}]"
        return row["value"], f"{row['value']:.3f} {ends}"

    lines = []
    for name in own["estimator"].unique():
        full, contrast = cell("full", "auc", name), cell("contrast", "auc", name)
        follows = cell("contrast", "delta0_balanced", name)[1]
        cells = [labels[name], full[1], contrast[1], f"{full[0] - contrast[0]:.3f}", follows]
        lines.append((-contrast[0], "| " + " | ".join(cells) + " |\n"))
    return "".join(line for _, line in sorted(lines))


def main(results: str, dataset: str) -> None:
    """Replace the scores in docs/estimators.md and the figure by those of a study."""
    intervals = artifacts.read_csv(Path(results) / "all" / "intervals.csv", artifacts.INTERVALS)
    config = over_defaults({}, ROOT)
    blocks = config["tables"]["leaderboard"]["blocks"]
    named = [row["estimator"] for block in blocks for row in block["rows"]]
    labels = {name: config["estimators"][name]["label"] for name in named}
    chosen = intervals[intervals["dataset"] == dataset]
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(
        before + BEGIN + HEAD + rows(chosen, labels) + END + after, encoding="utf-8"
    )
    shutil.copy(Path(results) / "figures" / FIGURE.name, FIGURE)


if __name__ == "__main__":
    main(*sys.argv[1:])
