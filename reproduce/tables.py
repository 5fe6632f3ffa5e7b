"""Tables of the paper's analyses: variance of hidden states, similarity of weights."""

import pandas as pd

from persistcal.report import latex, tables
from persistcal.report.latex import MISSING, PLACE, Printed, escape, number
from persistcal.report.layout import DisplayNames, Names, place_title


def hidden_state_table(rows: pd.DataFrame, *, labels: DisplayNames, last_layer: str) -> str:
    """Return correlations by layer; the last was measured "after_norm" or "before_norm"."""
    groups = dict(list(rows.groupby(PLACE, sort=False)))
    names = [place_title(place, labels) for place in groups]
    cells = {
        (key, row["layer"]): [number(row["mean_rho"]), number(row["median_rho"])]
        for key, group in groups.items()
        for row in group.to_dict("records")
    }
    heads = [latex.line(["Layer", *[r"Mean $\rho$", r"Median $\rho$"] * len(groups)])]
    if len(groups) > 1:
        heads = latex.spanning([(name, 2) for name in names]) + heads
    body = []
    for layer in sorted(rows["layer"].unique()):
        pairs = [cells.get((key, layer), [MISSING] * 2) for key in groups]
        body.append(latex.line([str(layer), *(text for pair in pairs for text in pair)]))
    caption = (
        f"Variance analysis ({'; '.join(names)}): Spearman correlation between the order of "
        "the checkpoints and the total variance, over the seeds of confidence adapters, of the "
        "hidden state of each layer at the end of a question's prompt. Mean and median over "
        "questions; positive: later checkpoints vary more. The last layer is taken "
        f"{last_layer.split('_')[0]} the model's final norm."
    )
    lines = latex.tabular(f"r{'cc' * len(groups)}", heads, [body])
    return latex.floating(lines, caption, "hidden-state-variance")


def weight_similarity(
    similarities: pd.DataFrame, *, all_checkpoints: DisplayNames, models: Names
) -> Printed:
    """Cosine similarities of the weights of each pair of checkpoints: a triangle per model.

    Checkpoints that were not compared, as no file has their weights, are left out.
    """
    tabulars = []
    for model, of_model in similarities.groupby("model", sort=False):
        cosines = of_model.set_index(["earlier", "later"])["cosine"]
        labels = all_checkpoints[str(model)]
        compared = {*of_model["earlier"], *of_model["later"]}
        names = [name for name in labels if name in compared]
        heads = [escape(labels[name]) for name in names]
        rows = []
        for i, earlier in enumerate(names[:-1]):
            values = [number(cosines[earlier, later]) for later in names[i + 1 :]]
            rows.append(latex.line([heads[i], *[""] * i, *values]))
        tabulars.append(tables.square(models[str(model)], heads[1:], rows))
    caption = "Cosine similarity of the flattened weights of each pair of checkpoints."
    body = latex.stacked(tabulars)
    tex = latex.floating(body, caption, "weight-similarity")
    return Printed(tex, similarities)
