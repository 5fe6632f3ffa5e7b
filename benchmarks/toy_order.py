"""Why adapters are below self-consistency in atlas: the experiments of benchmarks/log.md.

    python -m benchmarks.toy_order results/atlas text stated layers recipes

reads a study with the checkpoints of config/atlas.yaml, such as `make demo`, and prints a row
per estimator. `text`: logistic regressions on relation and frequency of the answer. `stated`:
the AUC of confidences in right answers against the same answers, exchanged between questions.
`layers`: probes at the end of the answer. `recipes`: adapters of one seed.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from persistcal.confidence.estimators import probes
from persistcal.confidence.verbalised import digit_tokens, score_answers
from persistcal.evaluation.aligned import align
from persistcal.evaluation.replicates import replicate
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import intervals
from persistcal.models.checkpoint import Checkpoint
from persistcal.models.load import open_model, open_tokenizer
from persistcal.models.prompts import confidence_prompt
from persistcal.questions.labels import normalise_answer
from persistcal.training.data import training_ids, training_questions
from persistcal.training.train import Optimisation, prepare, train_adapter

TRAINING, EVALUATION = ["p10", "p20", "p30"], ["p40", "p50", "p90", "p100"]
PROMPT = Path("config/prompts/confidence_atlas.txt").read_text()
SEED = 17


class ToyStudy:
    """Tables and checkpoints below the results of a study."""

    def __init__(self, results: str) -> None:
        self.results = Path(results)
        self.questions = pd.read_parquet(self.results / "questions/atlas.parquet")
        texts = self.questions[["question_id", "question", "category"]]
        rows = [self.table("answers", split).assign(split=split) for split in ("train", "test")]
        self.answers = pd.concat(rows).merge(texts, on="question_id")
        self.records = {
            c: Checkpoint.read(self.results / f"checkpoints/atlas/{c}.json")
            for c in TRAINING + EVALUATION
        }
        self.tokenizer = open_tokenizer(self.records["p100"])

    def table(self, kind: str, split: str) -> pd.DataFrame:
        """Return the rows of all checkpoints."""
        files = {c: f"{kind}/atlas/{c}/atlas/{split}.parquet" for c in TRAINING + EVALUATION}
        return pd.concat(
            pd.read_parquet(self.results / file).assign(checkpoint=name)
            for name, file in files.items()
        )

    def models(self) -> dict[str, torch.nn.Module]:
        """Return the models of all checkpoints."""
        return {c: open_model(record) for c, record in self.records.items()}

    def rate(self, model, rows: pd.DataFrame) -> np.ndarray:
        """Return the confidence that a checkpoint states in each answer."""
        texts = zip(rows["question"], rows["answer"], strict=True)
        tokens = self.tokenizer([confidence_prompt(PROMPT, *text) for text in texts])
        digits = digit_tokens(self.tokenizer)
        return score_answers(model, tokens["input_ids"], digits, batch_size=256)

    def rated(self, models) -> pd.DataFrame:
        """Return the answers to test questions with the confidences that models state."""
        tests = self.answers[self.answers["split"] == "test"].groupby("checkpoint")
        parts = [rows.assign(confidence=self.rate(models[name], rows)) for name, rows in tests]
        return pd.concat(parts)


def show(name: str, rated: pd.DataFrame, checkpoints: Sequence[str] = EVALUATION) -> None:
    """Print metrics on test questions; "same text": of answers with one text, by checkpoint."""
    rows = rated[(rated["split"] == "test") & rated["checkpoint"].isin(checkpoints)]
    settings = EvaluationSettings(
        min_contrast=20, conditionings=["odds"], n_replicates=1000, paper_marks=False
    )
    rows = rows.assign(estimator=name, train_dataset="", seed=0)
    table = intervals(replicate(align(rows, checkpoints, settings), settings)).set_index(
        "metric"
    )
    changes = table[table["scope"] == "contrast"]
    cells, columns = [f"{name:45}"], ["value", "lower_2_5pct", "upper_97_5pct"]
    for label, metric in (("Δ₀ᵇ", "delta0_balanced"), ("change AUC", "change_auc")):
        cells.append(label + " {:.3f} [{:.3f}, {:.3f}]".format(*changes.loc[metric, columns]))
    higher = [
        np.sign(same["confidence"][same["correct"]].to_numpy()[:, None] - wrong)
        for _, same in rows.groupby(["checkpoint", rows["answer"].map(normalise_answer)])
        for wrong in [same["confidence"][~same["correct"]].to_numpy()]
    ]
    auc = 0.5 + np.concatenate([signs.ravel() for signs in higher]).mean() / 2
    full = table.loc[table["scope"] == "full", "value"]["auc"]
    print("  ".join([*cells, f"AUC {full:.3f}", f"same text {auc:.3f}"]), flush=True)


def text(study: ToyStudy) -> None:
    """Fit logistic regressions on what the text of an answer tells, and on its probability."""
    rows = study.answers
    show("self-consistency", rows.assign(confidence=rows["probability"]))
    answer = rows["answer"].map(normalise_answer)
    references = study.questions.loc[study.questions["split"] == "train", "references"]
    counts = Counter(normalise_answer(names[0]) for names in references)
    chance = rows["probability"].clip(1e-4, 1 - 1e-4)
    column = pd.get_dummies(rows["category"]).astype(float)
    relations = list(column)
    column["in references"] = np.log1p(answer.map(lambda name: counts[name]))
    column["given"] = np.log(answer.groupby([rows["checkpoint"], answer]).transform("size"))
    column["probability"] = np.log(chance / (1 - chance))
    for columns in (relations, ["in references"], ["given"], list(column)):
        for group in (TRAINING, EVALUATION):
            learnt = (rows["split"] == "train") & rows["checkpoint"].isin(group)
            fit = LogisticRegression(max_iter=2000)
            fit.fit(column.loc[learnt, columns], rows.loc[learnt, "correct"])
            rated = rows.assign(confidence=fit.predict_proba(column[columns])[:, 1])
            show(f"{columns[-1]} ({len(columns)} columns), {group[0]}-{group[-1]}", rated)


def stated(study: ToyStudy) -> None:
    """Compare confidences in right answers and in the same answers to other questions."""
    facts = pd.read_parquet(study.results / "facts/atlas.parquet")
    facts = facts[(facts["relation"] == "city-country") & (facts["split"] == "test")]
    exchanged = facts["answer"].sample(frac=1, random_state=SEED).to_numpy()
    differ = facts["answer"].to_numpy() != exchanged
    rows = pd.concat([facts[differ], facts.assign(answer=exchanged)[differ]])
    truth = np.repeat([1, 0], differ.sum())
    models = study.models()
    for name, model in models.items():
        print(f"{name}: {roc_auc_score(truth, study.rate(model, rows)):.3f}", flush=True)
    show("no adapter", study.rated(models))


def layers(study: ToyStudy) -> None:
    """Fit probes at each layer, at each checkpoint and at several."""
    rows = dict(list(study.answers.groupby("checkpoint")))
    states, train = (
        {},
        {name: (part["split"] == "train").to_numpy() for name, part in rows.items()},
    )
    for name, model in study.models().items():
        texts = probes.with_answer(rows[name])
        states[name] = probes.read_states(model, study.tokenizer, texts, "best", "probe")
    for group in (*([name] for name in states), TRAINING, EVALUATION):
        for layer in range(len(states["p100"])):
            read = {name: part[layer] for name, part in states.items()}
            seen = np.concatenate([read[name][train[name]] for name in group])
            label = np.concatenate([rows[name]["correct"][train[name]] for name in group])
            probe = probes.fit_probe(seen, label)
            rated = [
                part.assign(confidence=probes.probe_confidence(probe, read[name]))
                for name, part in rows.items()
            ]
            show(f"layer {layer + 1}, fitted at {'+'.join(group)}", pd.concat(rated))


def recipe(
    study: ToyStudy,
    group: Sequence[str] = TRAINING,
    *,
    n_answers: int = 2,
    n_questions: int = 800,
    rank: int = 8,
    learning_rate: float = 3e-3,
    epochs: int = 3,
) -> pd.DataFrame:
    """Train an adapter, by default as in config/atlas.yaml; return the test answers, rated."""
    ids, learnt = training_ids(study.questions)[:n_questions], {}
    for name in group:
        tables = (study.table(kind, "train") for kind in ("clusters", "labels"))
        parts = (table[table["checkpoint"] == name] for table in tables)
        made = training_questions(study.questions, *parts, template=PROMPT, n_answers=n_answers)
        learnt[name] = {i: made[i] for i in ids if i in made}
    models = study.models()
    trainee = prepare(models, study.tokenizer, learnt.values(), rank=rank, alpha=2 * rank)
    part = trainee._replace(models={name: models[name] for name in group})
    settings = Optimisation(learning_rate, epochs, batch_size=16, micro_batch=64)
    train_adapter(part, learnt, ids, settings, seed=SEED)
    return study.rated(models)


def recipes(study: ToyStudy) -> None:
    """Train adapters."""
    show("oracle", recipe(study, EVALUATION))
    fewer = [{"n_questions": 100, "epochs": 24}, {"n_questions": 400, "epochs": 6}]
    changes = [{"n_answers": 10}, {"rank": 32}, {"learning_rate": 1e-3}]
    for changed in ({}, {"epochs": 1}, {"epochs": 10}, *fewer, *changes):
        show(f"non-oracle {changed}", recipe(study, **changed))


if __name__ == "__main__":
    torch.set_num_threads(1)
    EXPERIMENTS = {f.__name__: f for f in (text, stated, layers, recipes)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results")
    parser.add_argument("experiments", nargs="+", choices=EXPERIMENTS)
    options = parser.parse_args()
    for chosen in options.experiments:
        EXPERIMENTS[chosen](ToyStudy(options.results))
