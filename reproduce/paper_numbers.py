"""The paper's printed numbers besides its results, compared with a study's.

They are the sizes of contrast sets, accuracies, correlations of hidden states' variance,
transfer and the similarity of weights. `reproduce.paper` compares the results.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pandas as pd

from persistcal.store import artifacts

_ITEM = ["quantity", "model", "dataset", "item"]
_PLACES = {"triviaqa": "TriviaQA", "jeopardy": "Jeopardy", "bioasq": "BioASQ"}
_SIZES = {  # a column of ours, and the paper's
    "contrast set": ("size", "size"),
    "improvements": ("improvement", "row_wrong_column_right"),
}
_CORRELATIONS = {"mean ρ by layer": "mean_rho", "median ρ by layer": "median_rho"}
# The correlations and the transfer are about this model and dataset.
_ANALYSED = {"model": "Olmo 3 7B", "dataset": "TriviaQA"}


class Names(NamedTuple):
    """Display names by key, of a study's models, datasets and checkpoints of each model."""

    models: Mapping[str, str]
    datasets: Mapping[str, str]
    checkpoints: Mapping[str, Mapping[str, str]]


def _rows(
    quantity: str, frame: pd.DataFrame, item: pd.Series, value: pd.Series
) -> pd.DataFrame:
    return frame[["model", "dataset"]].assign(
        quantity=quantity, item=item.to_numpy(), value=pd.to_numeric(value).to_numpy()
    )


def _change(earlier: pd.Series, later: pd.Series) -> pd.Series:
    return earlier + " → " + later


def printed_numbers(files: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the printed numbers by quantity, model, dataset and item, under display names.

    `files` are those of `resources/paper` by name. `half` is half of the last printed digit.
    """
    sizes = files["contrast_set_sizes"]
    sizes = sizes.assign(dataset=sizes["dataset"].map(_PLACES))
    change = _change(sizes["row_checkpoint"], sizes["column_checkpoint"])
    parts = [
        _rows(quantity, sizes, change, sizes[column]).assign(half=0.0)
        for quantity, (_, column) in _SIZES.items()
    ]
    checkpoints = files["checkpoints"]
    names = checkpoints["short_name"].where(
        checkpoints["short_name"] != "", checkpoints["revision"]
    )
    for dataset, label in _PLACES.items():
        frame, share = checkpoints.assign(dataset=label), checkpoints[f"accuracy_{dataset}"]
        parts.append(_rows("accuracy (%)", frame, names, share).assign(half=0.05))
    variance = files["hidden_state_variance"].assign(**_ANALYSED)
    layer = variance["layer"].astype(str)
    for quantity, column in _CORRELATIONS.items():
        parts.append(_rows(quantity, variance, layer, variance[column]).assign(half=0.0005))
    transfer = files["transfer"]
    change = _change(transfer["trained_on"], transfer["checkpoint"])
    parts.append(_rows("transfer AUC", transfer, change, transfer["auc"]).assign(half=0.0005))
    weights = files["weight_similarity"].assign(dataset="")
    change = _change(weights["earlier"], weights["later"])
    parts.append(
        _rows("cosine of weights", weights, change, weights["cosine"]).assign(half=0.005)
    )
    return pd.concat(parts, ignore_index=True).rename(columns={"value": "paper"})


def measured_numbers(frames: Iterable[pd.DataFrame], names: Names) -> pd.DataFrame:
    """Return a study's numbers like `printed_numbers`, from tables with their columns.

    The tables are contrast sets, accuracies, correlations, transfer and similarities of
    weights, in any order. Accuracies are those on the test split, and transfer that of the
    recipe `transfer`.
    """
    parts = []
    for table in frames:
        frame, labels = table, {name: _labels(table, name, names) for name in table.columns}
        labels["dataset"] = labels.get("dataset", pd.Series("", frame.index))
        frame = frame.assign(model=labels["model"], dataset=labels["dataset"])
        if "improvement" in frame:
            change = _change(labels["earlier"], labels["later"])
            for quantity, (column, _) in _SIZES.items():
                parts.append(_rows(quantity, frame, change, frame[column]))
        elif "accuracy" in frame:
            tested = frame[frame["split"] == "test"]
            share = 100 * pd.to_numeric(tested["accuracy"])
            checkpoint = labels["checkpoint"].loc[tested.index]
            parts.append(_rows("accuracy (%)", tested, checkpoint, share))
        elif "mean_rho" in frame:
            for quantity, column in _CORRELATIONS.items():
                parts.append(_rows(quantity, frame, frame["layer"].astype(str), frame[column]))
        elif "trained_on" in frame:
            single = frame[frame["recipe"] == "transfer"]
            change = _change(labels["trained_on"], labels["checkpoint"]).loc[single.index]
            parts.append(_rows("transfer AUC", single, change, single["auc"]))
        elif "cosine" in frame:
            change = _change(labels["earlier"], labels["later"])
            parts.append(_rows("cosine of weights", frame, change, frame["cosine"]))
        else:
            columns = ", ".join(map(str, frame))
            raise ValueError(f"no printed number is about the columns {columns}")
    return pd.concat(parts, ignore_index=True).rename(columns={"value": "ours"})


def _labels(frame: pd.DataFrame, column: str, names: Names) -> pd.Series:
    """Return the display names of a column of models, datasets or checkpoints."""
    if column in ("model", "dataset"):
        of_kind = names.models if column == "model" else names.datasets
        return frame[column].map(lambda key: of_kind.get(key, key))
    if column not in ("earlier", "later", "checkpoint", "trained_on"):
        return frame[column]
    pairs = zip(frame["model"], frame[column], strict=True)
    of_row = [names.checkpoints.get(model, {}).get(name, name) for model, name in pairs]
    return pd.Series(of_row, frame.index, dtype=object)


def compare_numbers(printed: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """Return the printed numbers that a study has, too: the table PAPER_NUMBERS.

    `same` is whether they agree to the last printed digit.
    """
    joined = printed.merge(measured, on=_ITEM, validate="one_to_one")
    difference = joined["ours"] - joined["paper"]
    same = difference.abs() <= joined["half"] + 1e-9
    compared = joined.assign(
        difference=difference, same=same.astype("boolean").where(joined["ours"].notna())
    )
    return compared[list(artifacts.PAPER_NUMBERS.schema.names)]
