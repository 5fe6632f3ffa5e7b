"""A made-up finished study of any size, for tests of the page."""

from dataclasses import replace
from typing import get_type_hints

import numpy as np
import pandas as pd
from make_page import make_page
from measuring import align_models, evaluate, replicate_metrics

from persistcal.evaluation.aligned import align
from persistcal.evaluation.claims import make_claims
from persistcal.evaluation.evaluate import metrics_of_pairs
from persistcal.evaluation.findings import (
    by_estimator,
    make_findings,
    threshold_finding,
    to_row,
)
from persistcal.evaluation.replicates import MetricSamples, to_table
from persistcal.evaluation.samples import Sample
from persistcal.evaluation.settings import EvaluationSettings, block_name
from persistcal.evaluation.significance import compare_blocks, intervals
from persistcal.evaluation.thresholds import check_thresholds
from persistcal.report.grid import as_csv, fill_cells, lay_out
from persistcal.report.latex import results_table
from persistcal.report.page.contents import Shown, Stage, StudyTables
from persistcal.store import artifacts
from persistcal.store.tables import TableFiles

NAMES = ["end_correct", "self_consistency", "self_consistency_posthoc", "non_oracle", "oracle"]
TABLE = {
    "caption": "All metrics.",
    "layout": "models_as_blocks",
    "columns": {"contrast": ["delta0_balanced", "auc", "brier"], "full": ["auc", "smece"]},
    "blocks": [{"rows": [{"estimator": name} for name in NAMES]}],
}
# An estimator's weights of the checkpoint's knowledge and of the question's difficulty
EARS = {"self_consistency": (1.6, 0.6), "non_oracle": (0.3, 1.4), "oracle": (1.0, 1.2)}

DISTRACTORS = ("Chad", "Peru", "Oman", "Fiji")


def invent(
    *,
    n=60,
    checkpoints=("c1", "c2", "c3", "c4"),
    n_earlier=1,
    estimators=NAMES,
    questions=None,
    with_texts=True,
    tables=True,
):
    """Return the arguments of `make_page` for a study.

    `questions` are the test questions' texts and references (first one right), else made up.
    """
    model, dataset, min_contrast = "m", "quiz", 5
    rng = np.random.default_rng(0)
    questions = questions or [
        (f"What is the answer to question {i}?", [f"answer {i}"]) for i in range(n)
    ]
    n, ids = len(questions), [f"q{i:05d}" for i in range(len(questions))]
    hard = rng.normal(size=n)
    side = rng.integers(2, size=n)  # side 0 is forgotten at even checkpoints
    knowledge = []
    for k in range(len(checkpoints)):
        learnt, forgotten = 2.2 * k / len(checkpoints) - 0.6, 1.6 * (side == k % 2)
        knowledge.append(learnt - 1.3 * hard - forgotten + 0.5 * rng.normal(size=n))
    correct = np.array([row + 0.5 * rng.logistic(size=n) > 0 for row in knowledge])

    frames, evaluation = [], list(checkpoints[n_earlier:])
    for name in estimators:
        family = next((f for f in EARS if name.startswith(f)), "non_oracle")
        for run in range(3 if "oracle" in name else 1):
            for k, checkpoint in enumerate(evaluation):
                ear, difficulty = EARS[family]
                felt = (
                    ear * knowledge[k + n_earlier]
                    - difficulty * hard
                    + 0.8 * rng.normal(size=n)
                )
                if "posthoc" in name:
                    felt = felt / 2
                confidence = 1 / (1 + np.exp(-felt))
                if name == "end_correct":
                    confidence = np.full(n, k / max(1, len(evaluation) - 1))
                rows = {"question_id": ids, "confidence": confidence}
                subject = {
                    "checkpoint": checkpoint,
                    "train_dataset": dataset,
                    "estimator": name,
                }
                subject["seed"] = 17 + run if "oracle" in name else 0
                right = correct[k + n_earlier]
                frames.append(pd.DataFrame(rows).assign(correct=right, **subject))
    place = {"model": model, "dataset": dataset}
    predictions = pd.concat(frames, ignore_index=True)

    # The bootstrap is short, and of the first questions where there are very many.
    subset = predictions[
        predictions["estimator"].isin(NAMES) & predictions["question_id"].isin(ids[:300])
    ]
    replicates = replicate_metrics(
        subset,
        evaluation,
        EvaluationSettings(min_contrast=min_contrast, n_replicates=50, conditionings=["odds"]),
    )

    # The other estimators are copies, which makes a large study fast.
    def with_others(table):
        copied = table[table["estimator"] == NAMES[1]]
        copies = [copied.assign(estimator=name) for name in estimators if name not in NAMES]
        return pd.concat([table, *copies])

    bounds = with_others(intervals(replicates)).assign(**place)
    usual = EvaluationSettings(min_contrast=min_contrast)
    of_pairs = metrics_of_pairs(align(predictions, evaluation, usual))
    made = {
        "predictions": predictions.assign(**place),
        "replicates": with_others(to_table(replicates, "alike")).assign(**place),
        "intervals": bounds[artifacts.INTERVALS.schema.names],
        "pairs": of_pairs.assign(**place),
    }
    few = replace(usual, n_replicates=50)
    data = align(subset, evaluation, few)
    claims, _ = make_claims(data, replicates, few, determinism="known")
    made["findings"] = with_others(
        make_findings(
            align_models(
                predictions[predictions["estimator"].isin(NAMES)].assign(**place),
                {model: evaluation},
                usual,
            ),
            claims.assign(**place),
            artifacts.empty(artifacts.STATES),
            artifacts.empty(artifacts.THRESHOLDS),
            {dataset: usual},
        )
    )
    labels = {
        "models": {model: model.upper()},
        "datasets": {dataset: dataset.title()},
        "estimators": {e: e.replace("_", " ").capitalize() for e in estimators},
    }
    if tables and set(NAMES) <= set(estimators):
        block = [(dataset, name) for name in NAMES]
        tested = compare_blocks(replicates, {block_name(block, dataset): block})
        metrics = evaluate(subset, evaluation, EvaluationSettings(min_contrast=min_contrast))
        cells = fill_cells(
            metrics.assign(model=model, dataset=dataset),
            tested.assign(model=model, dataset=dataset),
            TABLE,
            models=[model],
            datasets={dataset: []},
        )
        grids = lay_out(cells, TABLE, labels=labels)
        tex = results_table(grids, caption=TABLE["caption"], label="main")
        made["tables"] = [TableFiles("main", as_csv(cells, "main"), tex)]
    if with_texts:
        texts = {"questions": questions, "knowledge": knowledge, "correct": correct}
        made |= _texts(place, checkpoints, ids, **texts, rng=rng)
    shown = Shown(
        labels,
        {
            model: {
                c: Stage(f"{round(100 * k / len(checkpoints))}%", 1e9 * k)
                for k, c in enumerate(checkpoints, start=1)
            }
        },
        {dataset: EvaluationSettings(min_contrast=min_contrast, n_replicates=200)},
        judge="lexical",
        results="out",
        descriptions={"main": TABLE},
        main=[name for name in NAMES if name in estimators],
        earlier={model: list(checkpoints[:n_earlier])},
    )
    config = "study: {models: [m], datasets: [quiz]}\n"
    return {"made": study_tables(**made), "shown": shown, "config": config, "weights": []}


def spread_over_places(invented):
    """Return an invented study of two models and two datasets with the same numbers."""
    made, shown = invented["made"], invented["shown"]
    tables = {}
    for name, rows in vars(made).items():
        if not isinstance(rows, pd.DataFrame) or rows.empty or "dataset" not in rows:
            continue
        models = ["m", "n"] if "model" in rows else [None]
        copies = [
            rows.assign(**({"model": model} if model else {}), dataset=dataset)
            for model in models
            for dataset in ("quiz", "test")
        ]
        trained = "train_dataset" in rows
        if trained:
            copies = [
                c.assign(train_dataset=c["dataset"].where(c["estimator"].ne(""), ""))
                for c in copies
            ]
        tables[name] = pd.concat(copies, ignore_index=True)
    labels = shown.labels | {
        "models": {"m": "M", "n": "N"},
        "datasets": {"quiz": "Quiz", "test": "Test"},
    }
    places = {
        "labels": labels,
        "checkpoints": {model: shown.checkpoints["m"] for model in "mn"},
        "settings": dict.fromkeys(labels["datasets"], *shown.settings.values()),
        "earlier": {model: shown.earlier["m"] for model in "mn"},
        "descriptions": {},
        "main": list(labels["estimators"]),
    }
    checkpoints = {model: ["c2", "c3", "c4"] for model in "mn"}
    answers = tables["predictions"].drop_duplicates(
        ["model", "dataset", "checkpoint", "question_id"]
    )
    settings = EvaluationSettings(precision=0.8, n_replicates=200)
    aligned = align_models(tables["predictions"], checkpoints, settings)
    checked = check_thresholds(aligned, answers.assign(answer=""), settings)
    of_pair = checked.thresholds.query("earlier == 'c2' and later == 'c4'")
    rows = []
    for place, of_place in of_pair.groupby(["model", "dataset"], sort=False):
        labels_of_place = dict(zip(("model", "dataset"), place, strict=True)) | {"slice": ""}
        for seeds in by_estimator(of_place):
            member = seeds[0]["train_dataset"], seeds[0]["estimator"]
            row = to_row(member, False, threshold_finding(seeds))
            rows.append(row | labels_of_place | {"earlier": "c2", "later": "c4"})
    tables["findings"] = pd.concat([tables["findings"], pd.DataFrame(rows)], ignore_index=True)
    files = TableFiles("thresholds", checked.thresholds.to_csv(index=False), "")
    made = replace(made, **tables, tables=[files])
    return invented | {"made": made, "shown": replace(shown, **places)}


def replicates_of(members, drawn, *, probes, fewest=None):
    """Return replicates of estimators with one seed; medians of `probes` are the values."""
    return {
        key: MetricSamples(
            {
                member: Sample(float(np.median(of_probes)), np.array(row), {0: 0.5})
                for member, row, of_probes in zip(members, rows, probes[key], strict=True)
            },
            np.array(probes[key]),
            np.inf,
            fewest,
            np.empty((len(members), 0)),
        )
        for key, rows in drawn.items()
    }


def study_tables(**made):
    """The tables of a study; others are empty."""
    empty_tables = {"checkpoints": [], "tables": []}
    for name, kind in get_type_hints(StudyTables, include_extras=True).items():
        for table in getattr(kind, "__metadata__", ()):
            empty_tables[name] = artifacts.read_files([], table)
    return StudyTables(**(empty_tables | made))


def _texts(place, checkpoints, ids, *, questions, knowledge, correct, rng):
    texts, references = zip(*questions, strict=True)
    same = {"split": "test", "any_of": True, "excluded": False}
    columns = {
        "question_id": ids,
        "index": range(len(ids)),
        "question": texts,
        "references": [list(accepted) for accepted in references],
        "category": [text.split(" ")[0] + " …" for text in texts],
    }
    frame = pd.DataFrame(columns).assign(options=None, gold=None, truths=None, **same)
    made = {"questions": [frame.assign(dataset=place["dataset"])], "clusters": [], "labels": []}
    for k, checkpoint in enumerate(checkpoints):
        rows = []
        for i, question in enumerate(ids):
            top = 1 / (1 + np.exp(-abs(knowledge[k][i]) - 0.3))
            wrong = [str(w) for w in rng.permutation(DISTRACTORS) if w not in references[i]][:3]
            answers = ([references[i][0]] if correct[k][i] else []) + wrong
            shares = np.array([top, *((1 - top) * np.array([0.55, 0.25, 0.1]))])[: len(answers)]
            rows += [
                (question, c, answer, float(p), [answer])
                for c, (answer, p) in enumerate(zip(answers, shares, strict=True))
            ]
        clusters = pd.DataFrame(rows, columns=artifacts.CLUSTERS.schema.names)
        right = dict(zip(ids, references, strict=True))
        judged = clusters[clusters["cluster"] < 2]
        labels = judged[["question_id", "cluster"]].assign(
            label=[
                "correct" if a in right[q] else "incorrect"
                for q, a in zip(judged["question_id"], judged["answer"], strict=True)
            ],
            source="lexical",
        )
        subject = {**place, "checkpoint": checkpoint}
        made["clusters"].append(clusters.assign(**subject))
        made["labels"].append(labels.assign(**subject))
    return {kind: pd.concat(frames, ignore_index=True) for kind, frames in made.items()}


def write_page(folder, made):
    """Write the page of an invented study, and its summary, into `folder`."""
    page, summary = make_page(**made, logs=str(folder / "logs"))
    (folder / "index.html").write_text(page, encoding="utf-8")
    (folder / "summary.txt").write_text(summary, encoding="utf-8")
    return page, summary
