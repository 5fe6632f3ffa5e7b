"""The analyses that a study may have, as the page draws them."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import pandas as pd

from persistcal.report.layout import DisplayNames
from persistcal.report.page.tables import as_number

Naming = Callable[[str], str]  # display names of the checkpoints of a model


class Analyses(NamedTuple):
    """Tables of `persistcal.store.artifacts`; a study has those that are not empty.

    `recipes` are the titles of the recipes of the transfer matrices, and `asked` the analyses
    that the study's config names for its models.
    """

    transfer: pd.DataFrame
    headroom: pd.DataFrame
    similarity: pd.DataFrame
    variance: pd.DataFrame
    recipes: Mapping[str, str]
    asked: Collection[str]

    def absent(self) -> list[str]:
        """Name the analyses that were asked for and that the page was made without."""
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
    analyses: Analyses, stages: Mapping[str, Mapping[str, Any]], labels: DisplayNames
) -> dict[str, list[dict[str, Any]]]:
    """Return the data of each analysis for the script.

    `stages` are by model and name its checkpoints, in order, each with a `label`.
    """

    def naming(model: str) -> Naming:
        known = stages.get(model, {})
        # A training set may join several checkpoints.
        return lambda name: " + ".join(
            known[c].label if c in known else c for c in name.split("+")
        )

    def titled(model: str, dataset: str) -> str:
        model = labels["models"].get(model, model)
        return f"{model} · {labels['datasets'].get(dataset, dataset)}"

    transfer, similarity, variance = [], [], []
    of = ["model", "dataset", "recipe"]
    for key, group in analyses.transfer.groupby(of, sort=False):
        model, dataset, recipe = map(str, key)
        title = f"{analyses.recipes.get(recipe, recipe)} ({titled(model, dataset)})"
        transfer.append({"title": title, **_matrix(group, naming(model))})
    for name, group in analyses.similarity.groupby("model", sort=False):
        model = str(name)
        title = labels["models"].get(model, model)
        similarity.append({"title": title, **_symmetric(group, naming(model))})
    for key, group in analyses.variance.groupby(of[:2], sort=False):
        model, dataset = map(str, key)
        rows = [
            {
                "layer": int(row["layer"]),
                "mean_rho": as_number(row["mean_rho"]),
                "median_rho": as_number(row["median_rho"]),
                "n": int(row["n"]),
            }
            for row in group.dropna(subset="mean_rho").to_dict("records")
        ]
        if rows:
            variance.append({"title": titled(model, dataset), "rows": rows})
    headroom = [
        {
            "label": titled(row["model"], row["dataset"]),
            "value": as_number(row["headroom"]),
            "lower": as_number(row["lower_2_5pct"]),
            "upper": as_number(row["upper_97_5pct"]),
            "error_rate": as_number(row["error_rate"]),
            "n": int(row["n"]),
        }
        for row in analyses.headroom.dropna(subset=["headroom", "lower_2_5pct"]).to_dict(
            "records"
        )
    ]
    return {
        "transfer": transfer,
        "similarity": similarity,
        "variance": variance,
        "headroom": headroom,
    }


def _matrix(group: pd.DataFrame, named: Naming) -> dict[str, Any]:
    """Return AUCs by training set and checkpoint."""
    rows, columns = (list(group[name].unique()) for name in ("trained_on", "checkpoint"))
    cells = group[["trained_on", "checkpoint", "auc"]].itertuples(index=False, name=None)
    at = {(row, column): as_number(auc) for row, column, auc in cells}
    return {
        "rows": [named(name) for name in rows],
        "columns": [named(name) for name in columns],
        "values": [[at.get((r, c)) for c in columns] for r in rows],
    }


def _symmetric(group: pd.DataFrame, named: Naming) -> dict[str, Any]:
    """Return cosines of each two checkpoints."""
    names = list(dict.fromkeys([*group["earlier"], *group["later"]]))
    cells = group[["earlier", "later", "cosine"]].itertuples(index=False, name=None)
    at = {(one, other): as_number(cosine) for one, other, cosine in cells}
    return {
        "names": [named(name) for name in names],
        "values": [
            [1.0 if a == b else at.get((a, b), at.get((b, a))) for b in names] for a in names
        ],
    }
