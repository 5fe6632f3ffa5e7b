"""Estimators on tables in memory, as their scripts get them."""

import pandas as pd
from answer_tables import clusters_table, questions_table
from estimate_confidences import estimate_confidences
from join_labels import join_labels
from records import write_record
from tiny_models import save_tiny

from persistcal.answers.clusters import label_predictions, take_answers
from persistcal.confidence.estimate import AnswerTables, Estimation
from persistcal.confidence.estimators.catalogue import registration_of
from persistcal.store import artifacts

PROMPT = "Prompt: {question}\nAnswer: {answer}\nTrue? "


def of_each(tables):
    """Tables of one model and dataset by checkpoint, one below the other."""
    parts = [frame.assign(checkpoint=name) for name, frame in tables.items()]
    return pd.concat(parts, ignore_index=True).assign(model="tiny", dataset="quiz")


def answers_of(questions, clusters, right):
    """Return ANSWERS of a checkpoint that answers only the questions `right` correctly."""
    labels = clusters[["question_id", "cluster"]].assign(
        label=clusters["question_id"].isin(right).map({True: "correct", False: "incorrect"})
    )
    answers = label_predictions(take_answers(questions, clusters), labels)
    return with_splits(answers, questions)[["split", *artifacts.ANSWERS.schema.names]]


def with_splits(rows, questions):
    """Add the split of each row's question."""
    return rows.assign(
        split=rows["question_id"].map(questions.set_index("question_id")["split"])
    )


def predictions(tables, read, judged, verified=None, records=None, **changes):
    """Return an estimator's predictions from the tables QUESTIONS, BEAMS, CLUSTERS, ANSWERS.

    The estimator reads BEAMS and CLUSTERS of `read`. It rates answers of `judged`, or is fitted
    on those of its training checkpoints, and has the labels of the latter only.
    """
    questions, beams, clusters, answers = tables
    rated = with_splits(clusters, questions)
    estimator_reads = [
        table[table["checkpoint"].isin(list(names))]
        for table, names in ((beams, read), (clusters, read), (rated, judged))
    ]
    earlier = answers["checkpoint"].isin(list(changes.get("earlier", ())))
    labelled = answers[earlier & answers["checkpoint"].isin(list(judged))]
    defaults = {"estimator": "mine", "dataset": "quiz", "equivalence": {"backend": "lexical"}}
    registered = registration_of(changes["function"]).for_jobs()
    estimation = Estimation(**{**defaults, "read": list(read), **registered, **changes})
    given = AnswerTables(
        questions, *estimator_reads, labelled, verified=verified, checkpoints=records
    )
    confidences = estimate_confidences(given, estimation=estimation, threads=1)
    evaluated = answers["checkpoint"].isin(estimation.evaluation) & (answers["split"] == "test")
    return join_labels(
        artifacts.QUESTIONS.fill(questions),
        confidences,
        answers[evaluated],
        estimator=estimation.estimator,
        copies=False,
        splits=["test"],
    )


def ask_tiny_models(
    folder, function, answer_by_model, right, models=None, beams=None, **settings
):
    """Return the predictions for the last of the models in `answer_by_model`.

    `right` returns the correctly answered questions for a model's seed. `models` contains
    further settings by name, and `beams` contains BEAMS and CLUSTERS by name.
    """
    questions, tables, records = questions_table(), {}, []
    for seed, (name, answer) in enumerate(answer_by_model.items()):
        shape = (models or {}).get(name, {})
        save_tiny(folder / name, seed=seed, **shape)
        records.append(write_record(folder / name, folder / f"{name}.json"))
        given, clusters = artifacts.empty(artifacts.BEAMS), clusters_table((answer, "Peru"))
        if beams:
            given, clusters = beams[name]
        answers = answers_of(questions, clusters, right(seed))
        for kind, frame in (("beams", given), ("clusters", clusters), ("answers", answers)):
            tables.setdefault(kind, {})[name] = with_splits(frame, questions)
    *earlier, last = answer_by_model
    return predictions(
        (questions, *(of_each(tables[kind]) for kind in ("beams", "clusters", "answers"))),
        *(list(answer_by_model), list(answer_by_model)),
        **{"records": records, "function": function, "prompt": PROMPT, **settings},
        earlier=earlier,
        evaluation=[last],
    )
