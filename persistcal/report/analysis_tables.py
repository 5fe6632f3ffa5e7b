"""Tables of the analyses, as LaTeX."""

from collections.abc import Mapping, Sequence

import pandas as pd

from persistcal.report.latex import (
    MISSING,
    escape,
    floating,
    line,
    metric_head,
    number,
    spanning,
)

_ATTRIBUTES = {
    "category": "Category",
    "group": "Group that the facts' weights go by",
    "popularity": "Decile of popularity",
    "first_letter": "First letter of the first name",
    "length": "Decile of length",
}


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


def confounds_table(
    rows: pd.DataFrame,
    *,
    models: Mapping[str, str],
    datasets: Mapping[str, str],
    label: str,
) -> str:
    """Return the LaTeX of what baselines get that know groups of questions only.

    Parameters
    ----------
    rows : DataFrame
        Table `persistcal.store.artifacts.CONFOUNDS`.
    models, datasets : mapping
        Labels.
    label : str
        What ``tab:`` is put before.
    """
    heads = ["Known of a question", "Groups", metric_head("delta0_balanced"), "95 % interval"]
    heads += [f"Contrast {metric_head('auc')}", f"Full {metric_head('auc')}"]
    heads[3] = escape(heads[3])
    lines = [rf"\begin{{tabular}}{{lr{'c' * 4}}}", r"\toprule", line(heads)]
    for (model, dataset), group in rows.groupby(["model", "dataset"], sort=False):
        title = escape(f"{models[str(model)]}, {datasets[str(dataset)]}")
        lines += [r"\midrule", rf"\multicolumn{{6}}{{c}}{{\textit{{{title}}}}} \\"]
        for row in group.to_dict("records"):
            interval = f"[{number(row['lower_2_5pct'])}, {number(row['upper_97_5pct'])}]"
            if row["lower_2_5pct"] != row["lower_2_5pct"]:
                interval = MISSING
            delta, *aucs = (
                number(row[name]) for name in ("delta0_balanced", "contrast_auc", "full_auc")
            )
            name = escape(_ATTRIBUTES[row["attribute"]])
            lines.append(line([name, str(row["n_groups"]), delta, interval, *aucs]))
    lines += [r"\bottomrule", r"\end{tabular}"]
    caption = (
        "Baselines that know one attribute of a question, and each checkpoint's accuracy on "
        "the train questions that share it. Where they are near 0, an estimator that is not has"
        " read more of an answer than the attribute."
    )
    return floating(lines, caption=caption, label=label)


# Metrics of the table of worlds
_OF_WORLDS = {
    "contrast": ["delta0_balanced", "auc", "brier"],
    "full": ["auc", "brier", "smece"],
}


def worlds_table(
    rows: pd.DataFrame,
    *,
    names: Mapping[str, str],
    datasets: Mapping[str, str],
    estimators: Mapping[str, str],
    label: str,
) -> str:
    """Return the LaTeX of metrics as mean ± standard deviation over worlds.

    Parameters
    ----------
    rows : DataFrame
        Table `persistcal.store.artifacts.WORLDS`.
    names, datasets, estimators : mapping
        Labels; the first of what the worlds are of.
    label : str
        What ``tab:`` is put before.
    """
    columns = [(scope, metric) for scope, of in _OF_WORLDS.items() for metric in of]
    lines = [rf"\begin{{tabular}}{{l{'c' * len(columns)}}}", r"\toprule"]
    lines += spanning([(scope.capitalize(), len(of)) for scope, of in _OF_WORLDS.items()])
    lines.append(line(["Method", *(metric_head(metric) for _, metric in columns)]))
    for (name, dataset), group in rows.groupby(["world_of", "dataset"], sort=False):
        title = escape(f"{names[str(name)]}, {datasets[str(dataset)]}")
        lines += [
            r"\midrule",
            rf"\multicolumn{{{len(columns) + 1}}}{{c}}{{\textit{{{title}}}}} \\",
        ]
        for estimator, of_one in group.groupby("estimator", sort=False):
            at = {(row["scope"], row["metric"]): row for row in of_one.to_dict("records")}
            texts = [
                rf"{number(at[key]['mean'])} $\pm$ {number(at[key]['sd'])}"
                if at[key]["mean"] == at[key]["mean"]
                else MISSING
                for key in columns
            ]
            lines.append(line([escape(estimators[str(estimator)]), *texts]))
    lines += [r"\bottomrule", r"\end{tabular}"]
    n = ", ".join(f"{count}" for count in sorted(rows["n"].unique()))
    caption = (
        f"Mean and standard deviation over {n} models that differ in the seed of their "
        "pre-training: a single model's figures differ by so much."
    )
    return floating(lines, caption=caption, label=label, shrink=True)


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
        Table `persistcal.store.artifacts.WEIGHT_SIMILARITIES`.
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
