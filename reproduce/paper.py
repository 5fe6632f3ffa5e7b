"""The paper's printed numbers under this project's names, compared with a study.

The paper is Wang, Hofweber, Bansal & Stengel-Eskin, *Evaluating Persistent
Calibration under Evolving Model Knowledge*; its numbers are in `resources/paper`.
"""

from collections.abc import Mapping

import pandas as pd

from persistcal.store import artifacts

# Label in the paper -> name of the table here, less the dataset.
TABLES = {
    "oracle-vs-methods-abridged": "oracle_vs_methods_abridged",
    "oracle-vs-methods-unabridged": "oracle_vs_methods",
    "oracle-vs-methods-unabridged-learn1d": "oracle_vs_methods_fitted",
    "methods-vs-ablations-triviaqa": "methods_vs_ablations_abridged",
    "methods-vs-ablations-unabridged": "methods_vs_ablations",
    "multi-vs-single-ckpt-triviaqa": "multi_vs_single_abridged",
    "multi-ckpt-vs-ablations-olmo7b-triviaqa": "multi_checkpoint_ablations_triviaqa",
    "multi-ckpt-vs-ablations-olmo7b-jeopardy": "multi_checkpoint_ablations_jeopardy",
    "mvs-ckpt-ans-triviaqa": "checkpoints_and_answers_triviaqa",
    "mvs-ckpt-ans-jeopardy": "checkpoints_and_answers_jeopardy",
    "oracle-vs-gcm-posthoc": "gcm",
    "transfer-to-bioasq": "domain_transfer",
}
FITTED = ("oracle_vs_methods_fitted",)

# (regime, method) in the paper -> estimator here.
ESTIMATORS = {
    ("", "End-correct baseline"): "end_correct",
    ("", "Self-consistency"): "self_consistency",
    ("", "Self-consistency / Post-hoc"): "self_consistency_posthoc",
    ("", "Self-consistency / Surrogate"): "self_consistency_surrogate",
    ("", "Self-consistency / Copy"): "self_consistency_copy",
    ("", "Non-oracle training"): "non_oracle",
    ("", "Non-oracle training / Surrogate"): "non_oracle_surrogate",
    ("", "Non-oracle training / Copy"): "non_oracle_copy",
    ("", "Oracle training"): "oracle",
    ("", "GCM"): "gcm",
    ("", "GCM / Post-hoc"): "gcm_posthoc",
    ("Non-oracle", "Multi-ckpt"): "non_oracle",
    ("Non-oracle", "Single-ckpt"): "non_oracle_single",
    ("Oracle", "Multi-ckpt"): "oracle",
    ("Oracle", "Respective-ckpt"): "oracle_respective",
    ("Non-oracle", "Multi-ckpt, n_cand=2"): "non_oracle",
    ("Non-oracle", "Multi-ckpt, n_cand=1"): "non_oracle_1answer",
    ("Non-oracle", "Single-ckpt, n_cand=2"): "non_oracle_single",
    ("Non-oracle", "Single-ckpt, n_cand=1"): "non_oracle_single_1answer",
    ("Oracle", "Multi-ckpt, n_cand=2"): "oracle",
    ("Oracle", "Multi-ckpt, n_cand=1"): "oracle_1answer",
    ("Oracle", "Resp-ckpt, n_cand=2"): "oracle_respective",
    ("Oracle", "Resp-ckpt, n_cand=1"): "oracle_respective_1answer",
    ("", "Multi-ckpt"): "oracle",
    ("", "Multi-ckpt / Single-ckpt data"): "oracle_single_data",
    ("", "Resp-ckpt"): "oracle_respective",
    ("", "Resp-ckpt / Pooled data"): "oracle_pooled_data",
}
UNTRAINED = ("end_correct", "self_consistency")  # the same wherever others were trained

_MEASURE = ["estimator", "conditioning", "scope", "metric"]
CELL = ["table", "model", "dataset", "train_dataset", *_MEASURE]


def paper_cells(printed: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of `resources/paper/results.csv` under this project's names.

    Models and datasets keep the paper's names. `train_dataset` belongs to the section in which
    a cell is printed. `trained_on` is the evaluated dataset for untrained estimators.
    """
    methods = pd.MultiIndex.from_frame(printed[["regime", "method"]])
    names = pd.Series([ESTIMATORS.get(method, "") for method in methods], index=printed.index)
    tables = printed["table"].map(TABLES)
    if (unknown := (names == "") | tables.isna()).any():
        row = printed.loc[unknown, ["table", "regime", "method"]].iloc[0].to_dict()
        raise ValueError(f"The paper's cell {row} has no name in persistcal/report/paper.py.")
    fitted = tables.isin(FITTED) & (printed["scope"] == "contrast")
    return pd.DataFrame(
        {
            "table": tables,
            "model": printed["model"],
            "dataset": printed["eval_dataset"],
            "train_dataset": printed["train_dataset"],
            "trained_on": printed["train_dataset"].mask(
                names.isin(UNTRAINED), printed["eval_dataset"]
            ),
            "estimator": names,
            "conditioning": fitted.map({True: "fitted", False: "odds"}),
            "scope": printed["scope"],
            "metric": printed["metric"],
            "paper": printed["value"].astype(float),
            "paper_bold": printed["bold"].astype(bool),
            "paper_underline": printed["underline"].astype(bool),
        }
    )


def compare(
    cells: pd.DataFrame,
    intervals: pd.DataFrame,
    study_cells: pd.DataFrame,
    *,
    models: Mapping[str, str],
    datasets: Mapping[str, str],
    settings: str,
) -> pd.DataFrame:
    """Join a study's numbers and marks with the paper's, for cells that both have.

    A cell is `inside` if the printed number, allowing for its rounding, is in our interval;
    without an interval it is missing. Marks are empty if the study's table of the same name has
    other estimators than the paper's.
    """
    keys = {label: key for key, label in datasets.items()}
    printed_cells = cells.assign(
        model=cells["model"].map({label: key for key, label in models.items()}),
        **{name: cells[name].map(keys) for name in ("dataset", "train_dataset", "trained_on")},
    )
    renamed = {"train_dataset": "trained_on", "value": "ours"}
    renamed |= {"lower_2_5pct": "lower", "upper_97_5pct": "upper"}
    computed = intervals.rename(columns=renamed)
    stored = [name if name != "train_dataset" else "trained_on" for name in CELL[1:]]
    compared = printed_cells.merge(computed, on=stored, how="inner", validate="many_to_one")
    compared = compared.merge(
        _marks(study_cells, printed_cells), on=CELL, how="left", validate="one_to_one"
    )
    half = 0.0005  # the paper prints three decimals
    inside = (compared["lower"] - half <= compared["paper"]) & (
        compared["paper"] <= compared["upper"] + half
    )
    has_interval = compared["lower"].notna() & compared["upper"].notna()
    return compared.assign(
        difference=compared["ours"] - compared["paper"],
        inside=inside.astype("boolean").where(has_interval),
        settings=settings,
    )[list(artifacts.PAPER_COMPARISON.schema.names)]


def _marks(study_cells: pd.DataFrame, printed_cells: pd.DataFrame) -> pd.DataFrame:
    """Return the marks of the columns that contain the paper's estimators."""
    column = [name for name in CELL if name != "estimator"]
    computed, printed = (
        cells.groupby(column)["estimator"].agg(_in_order).rename(name).reset_index()
        for name, cells in (
            ("ours", study_cells.dropna(subset="value")),
            ("printed", printed_cells),
        )
    )
    joined = computed.merge(printed, on=column)
    equal = joined.loc[joined["ours"] == joined["printed"], column]
    marks = study_cells[[*CELL, "bold", "underline"]].merge(equal, on=column)
    return marks.astype({"bold": "boolean", "underline": "boolean"})


def _in_order(estimators: pd.Series) -> tuple[str, ...]:
    return tuple(sorted(estimators))
