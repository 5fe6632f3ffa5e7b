"""Results as model repositories of the Hugging Face Hub keep them: ``.eval_results/*.yaml``.

https://huggingface.co/docs/hub/eval-results describes the format. It has no field for an
interval, so that one stands in the notes of each result.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from persistcal.evaluation.proportions import wilson
from persistcal.report.layout import DisplayNames


def hub_results(
    intervals: pd.DataFrame,
    accuracies: pd.DataFrame,
    *,
    checkpoints: Mapping[str, str],
    dataset: Mapping[str, str],
    labels: DisplayNames,
) -> list[dict[str, Any]]:
    """Return the results of one model on one dataset, for a YAML file.

    `checkpoints` are display names of those whose accuracies are given; `dataset` is its `id`
    on the Hub, and its `revision` if known. Metrics that are undefined are left out. A task is
    called ``accuracy``, or by scope and metric: ``contrast_auc``.
    """
    low, high = wilson(accuracies["accuracy"], accuracies["n"])
    rows = accuracies.assign(low=low, high=high).to_dict("records")
    entries = [
        _entry(
            dataset,
            "accuracy",
            row["accuracy"],
            [
                f"checkpoint {checkpoints[row['checkpoint']]}",
                f"95 % Wilson interval {row['low']:.4f} to {row['high']:.4f}",
                f"{row['n']} questions",
            ],
        )
        for row in rows
        if row["checkpoint"] in checkpoints
    ]
    for row in intervals.dropna(subset=["value"]).to_dict("records"):
        estimator = labels["estimators"].get(row["estimator"], row["estimator"])
        if row["train_dataset"] != row["dataset"]:
            trained = labels["datasets"].get(row["train_dataset"], row["train_dataset"])
            estimator += f" trained on {trained}"
        on = {"full": "all questions", "contrast": "contrast sets"}[row["scope"]]
        notes = [f"confidence: {estimator}", f"on {on} of {', '.join(checkpoints.values())}"]
        if row["scope"] == "contrast":
            notes.append(f"conditioned by {row['conditioning']}")
        ends = f"{row['lower_2_5pct']:.4f} to {row['upper_97_5pct']:.4f}"
        notes.append(f"95 % interval of the bootstrap over questions {ends}")
        entries.append(_entry(dataset, f"{row['scope']}_{row['metric']}", row["value"], notes))
    return entries


def _entry(
    dataset: Mapping[str, str], task: str, value: float, notes: Sequence[str]
) -> dict[str, Any]:
    about = {"id": dataset["id"], "task_id": task}
    if "revision" in dataset:
        about["revision"] = dataset["revision"]
    return {"dataset": about, "value": float(value), "notes": "; ".join(notes)}
