"""Answers as every_eval_ever keeps them: a JSON of each run, and a JSONL of its questions.

https://github.com/evaleval/every_eval_ever describes the format, whose version is `VERSION`.
What it has no field for stands in the metadata of a question, so that
`persistcal.imports.every_eval_ever` reads everything back.
"""

import hashlib
import json
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from persistcal.evaluation.proportions import wilson

VERSION = "0.2.2"
RESULT = "accuracy"
OF_BEAMS = ("beam", "logprob", "n_tokens", "entropy", "unconditional")


class EvaluationRun(NamedTuple):
    """What identifies a run: a checkpoint's answers to a dataset, as in the study's config.

    `model_id` is ``developer/model``, `file_path` that of the questions' file in a datastore,
    and `timestamp` when the record was made, in seconds since 1970.
    """

    model: str
    checkpoint: str
    dataset: str
    model_id: str
    file_path: str
    timestamp: str

    @property
    def evaluation_id(self) -> str:
        """Name of the dataset, model and time."""
        return f"{self.dataset}/{self.model_id}/{self.timestamp}"


class Given(NamedTuple):
    """Tables of one checkpoint and dataset; predictions may be of other checkpoints too."""

    questions: pd.DataFrame
    beams: pd.DataFrame
    clusters: pd.DataFrame
    labels: pd.DataFrame
    answers: pd.DataFrame
    predictions: pd.DataFrame


def question_lines(given: Given, run: EvaluationRun) -> str:
    """Return the JSONL of a run: a line for each question with what was answered."""
    asked = {row["question_id"]: row for row in given.questions.to_dict("records")}
    answers = {row["question_id"]: row for row in given.answers.to_dict("records")}
    key = ["question_id", "cluster"]
    labelled = given.clusters.merge(given.labels, on=key)
    label_of = labelled.set_index(["question_id", "answer"])["label"].to_dict()
    own = given.predictions[given.predictions["checkpoint"] == run.checkpoint]
    columns = ["train_dataset", "estimator", "seed", "confidence"]
    stated = {q: rows[columns].values.tolist() for q, rows in own.groupby("question_id")}
    lines = []
    for question_id, rows in given.beams.groupby("question_id", sort=False):
        of = asked[question_id]
        responses = [
            {name: row[name] for name in OF_BEAMS if row[name] == row[name]}
            | {"label": label_of.get((question_id, row["text"]), "")}
            for row in rows.sort_values("beam").to_dict("records")
        ]
        about = {"model": run.model, "checkpoint": run.checkpoint, "dataset": run.dataset}
        about |= {"split": of["split"], "responses": json.dumps(responses)}
        if question_id in stated:
            about["predictions"] = json.dumps(stated[question_id], ensure_ascii=False)
        asked_as: dict[str, Any] = {"raw": of["question"], "reference": [*of["references"]]}
        if of["options"] is not None:
            asked_as["choices"] = [*of["options"]]
            about["gold"] = str(int(of["gold"]))
        answer = answers.get(question_id)
        lines.append(_line(run, str(question_id), asked_as, rows, answer, about))
    return "".join(lines)


def _line(
    run: EvaluationRun,
    question_id: str,
    asked: dict[str, Any],
    beams: pd.DataFrame,
    answer: Mapping[Hashable, Any] | None,
    about: Mapping[str, str],
) -> str:
    same = {"raw": asked["raw"], "reference": asked["reference"]}
    content = json.dumps(same, sort_keys=True, separators=(",", ":")).encode()
    right = answer is not None and bool(answer["correct"])
    extracted = {
        "turn_idx": 0,
        "source": "output.raw",
        "extracted_value": "" if answer is None else answer["answer"],
        "extraction_method": "most_probable_cluster",
        "is_terminal": True,
    }
    record = {
        "schema_version": VERSION,
        "evaluation_id": run.evaluation_id,
        "model_id": run.model_id,
        "evaluation_name": run.dataset,
        "evaluation_result_id": RESULT,
        "sample_id": question_id,
        "sample_hash": hashlib.sha256(content).hexdigest(),
        "interaction_type": "single_turn",
        "input": asked,
        "output": {"raw": beams.sort_values("beam")["text"].tolist()},
        "answer_attribution": [extracted],
        "evaluation": {"score": float(right), "is_correct": right},
        "metadata": dict(about),
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def run_record(lines: str, given: Given, run: EvaluationRun) -> str:
    """Return the JSON of a run: its accuracy on the test questions, and where `lines` lie.

    Who made the record is not known here: its organisation is "unknown".
    """
    test = given.questions.loc[given.questions["split"] == "test", "question_id"]
    asked = test[test.isin(given.beams["question_id"])]
    n = len(asked)
    right = given.answers.loc[given.answers["question_id"].isin(asked), "correct"].sum()
    low, high = (float(end) for end in wilson(right / max(n, 1), max(n, 1)))
    interval = {"lower": low, "upper": high, "confidence_level": 0.95, "method": "Wilson"}
    result = {
        "evaluation_result_id": RESULT,
        "evaluation_name": run.dataset,
        "source_data": {"dataset_name": run.dataset, "source_type": "other"},
        "metric_config": {
            "metric_id": RESULT,
            "metric_unit": "proportion",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0,
            "max_score": 1,
        },
        "score_details": {
            "score": right / max(n, 1),
            "uncertainty": {"confidence_interval": interval, "num_samples": n},
        },
    }
    record = {
        "schema_version": VERSION,
        "evaluation_id": run.evaluation_id,
        "retrieved_timestamp": run.timestamp,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "persistent-calibration", "version": "unknown"},
        "model_info": {
            "name": run.model,
            "id": run.model_id,
            "additional_details": {"checkpoint": run.checkpoint},
        },
        "evaluation_results": [result],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": run.file_path,
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(lines.encode()).hexdigest(),
            "total_rows": lines.count("\n"),
        },
    }
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"
