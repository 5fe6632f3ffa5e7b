"""Write the scores of each estimator of a study into docs/estimators.md, and copy its figure.

`python -m tools.leaderboard results/atlas atlas` reads the results of its target `all`.
"""

import shutil
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from persistcal.evaluation.metrics.registry import MetricKey
from persistcal.evaluation.replicates import Replicates, from_table
from persistcal.evaluation.significance import compare_estimators
from persistcal.store import artifacts
from study.config_files import over_defaults

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "estimators.md"
COLUMNS = [("full", "auc"), ("contrast", "auc"), ("contrast", "delta0_balanced")]
Best = Mapping[tuple[str, str], tuple[str, set[str]]]  # by scope and metric
FIGURE = ROOT / "docs" / "images" / "leaderboard.png"
BEGIN, END = "<!-- scores -->\n", "<!-- end of scores -->\n"
LEGEND = (
    "**Bold**: best of its column. \\*: cannot be distinguished from the best, by simultaneous "
    "95 %\nintervals of all pairs of these estimators.\n\n"
)
HEAD = "| estimator | full AUC | contrast AUC | Δ₀ᵇ |\n|---|--:|--:|--:|\n"


def best_sets(replicates: Replicates, dataset: str, labels: Collection[str]) -> Best:
    """Return the best estimator of each column, and estimators not distinguished from it.

    Only estimators of `labels` that were trained on `dataset` are compared.
    """
    chosen = {
        i: name
        for i, (trained_on, name) in enumerate(replicates.estimators)
        if trained_on == dataset and name in labels
    }
    values = {}
    for scope, metric in COLUMNS:
        key = MetricKey("odds", scope, metric)
        compared = compare_estimators(replicates, list(chosen), key)
        best = int(np.nanargmax(replicates.observed[key][list(chosen)]))
        names = list(chosen.values())
        near = {
            name for name, is_near in zip(names, compared.near(best), strict=True) if is_near
        }
        values[scope, metric] = names[best], near
    return values


def rows(intervals: pd.DataFrame, labels: dict[str, str], best: Best) -> str:
    """Return a Markdown row for each estimator of `labels`, the highest contrast AUC first.

    Estimators that were trained on another dataset are left out.
    """
    in_domain = intervals[intervals["train_dataset"] == intervals["dataset"]]
    in_domain = in_domain[
        (in_domain["conditioning"] == "odds") & in_domain["estimator"].isin(labels)
    ]
    key = zip(in_domain["scope"], in_domain["metric"], in_domain["estimator"], strict=True)
    scores = dict(zip(key, in_domain.to_dict("records"), strict=True))

    def cell(scope: str, metric: str, name: str) -> tuple[float, str]:
        row = scores[scope, metric, name]
        ends = f"[{row['lower_2_5pct']:.3f}, {row['upper_97_5pct']:.3f}]"
        first, near = best[scope, metric]
        value = f"{row['value']:.3f}"
        value = f"**{value}**" if name == first else value + r"\*" * (name in near)
        return row["value"], f"{value} {ends}"

    lines = []
    for name in in_domain["estimator"].unique():
        cells = [cell(*column, name)[1] for column in COLUMNS]
        order = -cell("contrast", "auc", name)[0]
        lines.append((order, "| " + " | ".join([labels[name], *cells]) + " |\n"))
    return "".join(line for _, line in sorted(lines))


def main(results: str, dataset: str) -> None:
    """Replace the scores in docs/estimators.md and the figure by a study's."""
    intervals = artifacts.read_csv(Path(results) / "all" / "intervals.csv", artifacts.INTERVALS)
    config = over_defaults({}, ROOT)
    blocks = config["tables"]["leaderboard"]["blocks"]
    named = [row["estimator"] for block in blocks for row in block["rows"]]
    labels = {name: config["estimators"][name]["label"] for name in named}
    chosen = intervals[intervals["dataset"] == dataset]
    [model] = chosen["model"].unique()  # the estimators of one model are paired
    files = sorted((Path(results) / "replicates" / model / dataset).glob("*.parquet"))
    drawn = from_table(artifacts.read_files(list(map(str, files)), artifacts.REPLICATES))
    best = best_sets(drawn, dataset, labels)
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    PAGE.write_text(
        head + BEGIN + LEGEND + HEAD + rows(chosen, labels, best) + END + tail, encoding="utf-8"
    )
    shutil.copy(Path(results) / "figures" / FIGURE.name, FIGURE)


if __name__ == "__main__":
    main(*sys.argv[1:])
