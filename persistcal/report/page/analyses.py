"""The analyses that a study may have, as the page draws them."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import pandas as pd

Named = Callable[[str, str], str]  # of a model, how a checkpoint is printed


class Analyses(NamedTuple):
    """Frames of the analyses; empty ones are not part of the study.

    Attributes
    ----------
    transfer, headroom, similarity : DataFrame
        Tables TRANSFER, HEADROOM and WEIGHT_SIMILARITIES of `persistcal.store.artifacts`.
    variance : DataFrame
        Columns model, dataset, layer, mean_rho, median_rho and n.
    recipes : mapping
        Titles of the recipes of the transfer matrices.
    asked : collection of str
        Analyses that the study's config names for its models.
    """

    transfer: pd.DataFrame
    headroom: pd.DataFrame
    similarity: pd.DataFrame
    variance: pd.DataFrame
    recipes: Mapping[str, str]
    asked: Collection[str]

    def absent(self) -> list[str]:
        """Say which of the analyses that were asked for the page was made without."""
        frames = {
            "transfer": ("transfer matrices", self.transfer),
            "gcm_headroom": ("headroom over the verifier", self.headroom),
            "weight_similarity": ("similarity of weights", self.similarity),
            "hidden_state_variance": ("hidden-state variance", self.variance),
        }
        lost = [
            name for key, (name, rows) in frames.items() if key in self.asked and rows.empty
        ]
        if not lost:
            return []
        return [
            f"Analyses ({', '.join(lost)}): the target “all” computes them and makes a page of "
            "its own."
        ]


def analyses_view(
    analyses: Analyses,
    checkpoints: Mapping[str, Mapping[str, Any]],
    labels: Mapping[str, Mapping[str, str]],
) -> dict[str, list[dict[str, Any]]]:
    """Return what the script draws of each analysis.

    Parameters
    ----------
    analyses : Analyses
        Those of the study.
    checkpoints : mapping
        By model and name, in order; values have a `label`.
    labels : mapping
        Labels of `models` and `datasets`.
    """

    def named(model: str, checkpoint: str) -> str:
        # A training set may join several checkpoints.
        known = checkpoints.get(model, {})
        return " + ".join(known[c].label if c in known else c for c in checkpoint.split("+"))

    def titled(row: Mapping[Any, Any] | pd.Series) -> str:
        model = labels["models"].get(row["model"], row["model"])
        return f"{model} · {labels['datasets'].get(row['dataset'], row['dataset'])}"

    return {
        "transfer": [
            {
                "title": f"{analyses.recipes.get(str(recipe), str(recipe))} "
                f"({titled(group.iloc[0])})",
                **_matrix(group, "trained_on", "checkpoint", "auc", str(model), named),
            }
            for (model, _, recipe), group in analyses.transfer.groupby(
                ["model", "dataset", "recipe"], sort=False
            )
        ],
        "similarity": [
            _symmetric(group, str(model), named, labels)
            for model, group in analyses.similarity.groupby("model", sort=False)
        ],
        "variance": [
            {
                "title": titled(group.iloc[0]),
                "rows": [
                    {
                        "layer": int(row["layer"]),
                        "mean_rho": _number(row["mean_rho"]),
                        "median_rho": _number(row["median_rho"]),
                        "n": int(row["n"]),
                    }
                    for row in group.to_dict("records")
                    if row["mean_rho"] == row["mean_rho"]
                ],
            }
            for _, group in analyses.variance.groupby(["model", "dataset"], sort=False)
            if group["mean_rho"].notna().any()
        ],
        "headroom": [
            {
                "label": titled(row),
                "value": _number(row["headroom"]),
                "lower": _number(row["lower_2_5pct"]),
                "upper": _number(row["upper_97_5pct"]),
                "error_rate": _number(row["error_rate"]),
                "n": int(row["n"]),
            }
            for row in analyses.headroom.to_dict("records")
            if row["headroom"] == row["headroom"] and row["lower_2_5pct"] == row["lower_2_5pct"]
        ],
    }


def _number(value: float) -> float | None:
    return None if value != value else round(float(value), 4)


def _matrix(
    group: pd.DataFrame, row: str, column: str, value: str, model: str, named: Named
) -> dict[str, Any]:
    rows, columns = (list(dict.fromkeys(group[name])) for name in (row, column))
    at = {(r[row], r[column]): _number(r[value]) for r in group.to_dict("records")}
    return {
        "rows": [named(model, name) for name in rows],
        "columns": [named(model, name) for name in columns],
        "values": [[at.get((r, c)) for c in columns] for r in rows],
    }


def _symmetric(
    group: pd.DataFrame, model: str, named: Named, labels: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    names = list(dict.fromkeys([*group["earlier"], *group["later"]]))
    at = {(r["earlier"], r["later"]): _number(r["cosine"]) for r in group.to_dict("records")}
    return {
        "title": labels["models"].get(model, model),
        "names": [named(model, name) for name in names],
        "values": [
            [1.0 if a == b else at.get((a, b), at.get((b, a))) for b in names] for a in names
        ],
    }
