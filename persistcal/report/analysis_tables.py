"""Tables of the analyses, as LaTeX."""

from collections.abc import Mapping, Sequence

import pandas as pd

from persistcal.report.latex import MISSING, escape, floating, line, number, spanning


def hidden_state_table(
    rows: pd.DataFrame,
    *,
    models: Mapping[str, str],
    datasets: Mapping[str, str],
    last_layer: str,
    label: str,
) -> str:
    r"""Return the LaTeX of the correlations of hidden-state variance with training.

    Parameters
    ----------
    rows : DataFrame
        Columns model, dataset, and those of `correlations_by_layer`.
    models, datasets : mapping
        Labels.
    last_layer : {"after_norm", "before_norm"}
        Where the last layer was measured, for the caption.
    label : str
        What ``tab:`` is put before.
    """
    groups = dict(list(rows.groupby(["model", "dataset"], sort=False)))
    names = [f"{models[str(model)]}, {datasets[str(dataset)]}" for model, dataset in groups]
    cells = {
        (key, row["layer"]): [number(row["mean_rho"]), number(row["median_rho"])]
        for key, group in groups.items()
        for row in group.to_dict("records")
    }
    heads = [r"Mean $\rho$", r"Median $\rho$"] * len(groups)
    lines = [rf"\begin{{tabular}}{{r{'c' * len(heads)}}}", r"\toprule"]
    if len(groups) > 1:
        lines += spanning([(name, 2) for name in names])
    lines += [line(["Layer", *heads]), r"\midrule"]
    for layer in sorted(rows["layer"].unique()):
        pairs = [cells.get((key, layer), [MISSING] * 2) for key in groups]
        lines.append(line([str(layer), *(text for pair in pairs for text in pair)]))
    lines += [r"\bottomrule", r"\end{tabular}"]
    caption = (
        f"Variance analysis ({'; '.join(names)}): Spearman correlation between the order of "
        "the checkpoints and the total variance, over the seeds of confidence adapters, of the "
        "hidden state of each layer at the end of a question's prompt. Mean and median over "
        "questions; positive: later checkpoints vary more. The last layer is taken "
        f"{last_layer.split('_')[0]} the model's final norm."
    )
    return floating(lines, caption=caption, label=label)


def similarity_table(
    rows: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Mapping[str, str]],
    models: Mapping[str, str],
    label: str,
) -> str:
    """Return the LaTeX of the cosine similarities of weights: a triangle per model.

    Parameters
    ----------
    rows : DataFrame
        Table `persistcal.artifacts.WEIGHT_SIMILARITIES`.
    checkpoints : mapping
        By model the labels of its checkpoints, in order.
    models : mapping
        Labels.
    label : str
        What ``tab:`` is put before.
    """
    cosines = rows.set_index(["model", "earlier", "later"])["cosine"]
    lines: list[str] = []
    for model in dict.fromkeys(rows["model"]):
        lines += _triangle(model, models[model], checkpoints[model], cosines)
    caption = "Cosine similarity of the flattened weights of each pair of checkpoints."
    return floating(lines[:-2], caption=caption, label=label)


def _triangle(
    model: str, title: str, checkpoints: Mapping[str, str], cosines: pd.Series
) -> Sequence[str]:
    names, heads = list(checkpoints), [escape(text) for text in checkpoints.values()]
    lines = [
        rf"\begin{{tabular}}{{l{'c' * (len(names) - 1)}}}",
        r"\toprule",
        rf"\multicolumn{{{len(names)}}}{{c}}{{\textit{{{escape(title)}}}}} \\",
        rf"\cmidrule(lr){{1-{len(names)}}}",
        line(["", *heads[1:]]),
        r"\midrule",
    ]
    for place, earlier in enumerate(names[:-1]):
        values = [number(cosines[model, earlier, later]) for later in names[place + 1 :]]
        lines.append(line([heads[place], *[""] * place, *values]))
    return [*lines, r"\bottomrule", r"\end{tabular}", "", r"\vspace{5pt}"]
