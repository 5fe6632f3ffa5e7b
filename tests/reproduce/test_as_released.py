"""With every choice as released, an import and a run on the same answers agree."""

import numpy as np
import pandas as pd
import pytest
import yaml
from estimation import of_each, predictions, with_splits
from gather_confidences import gather_confidences
from join_labels import join_labels
from judge_answers import judge_answers
from judge_server import FakeJudge, response
from measuring import evaluate
from release_archive import DATASETS, MODELS, Release
from release_import import tables_of
from workflow_runs import ROOT

from persistcal.answers.clusters import cluster_table, label_predictions, take_answers
from persistcal.answers.equivalence import FORMS, MutualEntailment
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store.artifacts import ANSWERS, CLUSTERS, GIVEN_LABELS, LABELS
from study.config_files import over_defaults
from study.inputs import Inputs
from study.study import Study

pytestmark = pytest.mark.slow
MODEL, DATASET = "a", "triv"
EARLIER, EVALUATION = (list(MODELS[MODEL][group]) for group in ("earlier", "evaluation"))
# A copy is scored once: the checkpoint that scored the answers of checkpoint c.
SCORED = {"non_oracle_copy": lambda c: EARLIER[-1]}
CELL = ["train_dataset", "estimator", "seed", "conditioning", "scope", "metric"]


LETTERS = {"correct": "R", "incorrect": "W", "not_attempted": "N"}


def beams_of(clusters):
    """Return beams of which a group's first has its probability, and an empty one the rest."""
    rows = clusters.explode("members", ignore_index=True).rename(columns={"members": "text"})
    best = ~rows.duplicated(["question_id", "cluster"])
    with np.errstate(divide="ignore"):
        logprobs = np.log(rows["probability"].where(best, 0)).clip(lower=-1000)
    beams = rows[["question_id", "text"]].assign(logprob=logprobs)
    rest = 1 - clusters.groupby("question_id")["probability"].sum()
    lost = np.log(rest[rest > 1e-6]).rename("logprob").reset_index().assign(text=" ")
    return pd.concat([beams, lost])


def grouped_again(questions, clusters, settings):
    """Return the groups of their own answers; the model knows only the spellings in words."""
    members = clusters.explode("members")
    places = zip(members["question_id"], members["cluster"], strict=True)
    group_of = dict(zip(members["members"], places, strict=True))

    def entails(pairs):
        said = [(one, other) for _, one, other in pairs]
        return [group_of[a] == group_of[b] and "half" in a + b for a, b in said]

    equivalent = MutualEntailment(entails, FORMS[settings["equivalence"]["form"]])
    weighting = settings["decoding"]["weighting"]
    table = cluster_table(questions, beams_of(clusters), equivalent, weighting=weighting)
    return table.assign(probability=table["probability"].astype("float32").astype(float))


def labelled_again(questions, clusters, labels, settings, fake):
    """Return the labels of a judge that replies in the letters of the release."""
    grouped = clusters.merge(labels, on=["question_id", "cluster"])
    for _, group in grouped.groupby("question_id"):
        lines = [f"{i}. {LETTERS[label]}" for i, label in enumerate(group["label"], start=1)]
        fake.replies[group["answer"].iloc[0]] = response("\n".join(lines))
    own = vars(fake.settings())
    reached = {key: value for key, value in settings["judge"].items() if key != "clusters"}
    reached |= {key: own[key] for key in ("base_url", "retries", "poll_s", "first_wait_s")}
    return judge_answers(
        questions,
        clusters,
        pd.DataFrame(columns=GIVEN_LABELS.schema.names),
        judged_clusters=None,
        judge=Inputs(Study(settings), ROOT).label_settings(),
        reached=reached | {"max_cost": 1000},
        folder=str(fake.folder),
        noted=f"{fake.folder}/noted.csv",
    )[0]


class ReleasedStudy:
    """The tables of a release with confidences in sixteenths, and the results of a run."""

    def __init__(self, folder, posthoc):
        chosen = {MODEL: MODELS[MODEL]}, {DATASET: DATASETS[DATASET]}
        release = Release(folder, *chosen, levels=16)
        self.tables = tables_of(release.tree, *chosen, posthoc)
        self.scores, verified = {}, []
        for (_, _, _, estimator, seed, checkpoint), values in release.numbers.items():
            rows = [(f"{DATASET}-{index}", p) for index, p in values.items()]
            frame = pd.DataFrame(rows, columns=["question_id", "confidence"])
            if estimator == "gcm":
                verified.append(frame.assign(checkpoint=checkpoint))
            elif "transfer" not in estimator:
                key = {"answers_of": checkpoint, "recipe": estimator, "trained_on": "some"}
                frame = frame.assign(**key, train_dataset=DATASET, seed=seed, answers="own")
                self.scores.setdefault(estimator, {}).setdefault(checkpoint, []).append(frame)
        self.verified = pd.concat(verified)
        self.answers = {}

    def run_from_beams(self, settings, fake):
        """Group and label answers as a study with `settings` does; they equal the import's."""
        asked = self.tables["questions", DATASET]
        asked = asked.assign(question=asked["question_id"], references=[["35"]] * len(asked))
        for checkpoint in [*EARLIER, *EVALUATION]:
            place = MODEL, DATASET, checkpoint
            keys = [(kind, *place) for kind in ("clusters", "labels")]
            clusters, labels = (self.tables[key] for key in keys)
            grouped = grouped_again(asked, clusters, settings)
            judged = labelled_again(asked, grouped, labels, settings, fake)
            for key, ours, names in (
                (keys[0], grouped, CLUSTERS.schema.names),
                (keys[1], judged, LABELS.schema.names[:3]),
            ):
                by = ["question_id", "cluster"]
                both = [table[names].sort_values(by) for table in (ours, self.tables[key])]
                pd.testing.assert_frame_equal(*(t.reset_index(drop=True) for t in both))
                self.tables[key] = ours
            self.answers[checkpoint] = self.answers_at(checkpoint)

    def table(self, kind, checkpoints):
        return of_each({c: self.tables[kind, MODEL, DATASET, c] for c in checkpoints})

    def answers_at(self, checkpoint):
        """Return the predictions of a checkpoint with labels, as `judge_answers` does."""
        place = MODEL, DATASET, checkpoint
        asked, clusters = self.tables["questions", DATASET], self.tables["clusters", *place]
        taken = take_answers(asked, clusters)
        labelled = label_predictions(taken, self.tables["labels", *place])
        return with_splits(labelled, asked)[["split", *ANSWERS.schema.names]]

    def answers_of(self, checkpoints):
        return of_each({c: self.answers[c] for c in checkpoints})

    def estimated(self, name, settings):
        """Return the predictions of `estimate_confidences` for an estimator."""
        all_checkpoints = [*EARLIER, *EVALUATION]
        judged = all_checkpoints if "posthoc" in settings else EVALUATION
        read = (
            all_checkpoints
            if {"posthoc", "last_earlier"} & {*settings, *settings["reads"]}
            else EVALUATION
        )
        return predictions(
            (
                self.tables["questions", DATASET],
                *(self.table(kind, read) for kind in ("beams", "clusters")),
                self.answers_of(judged),
            ),
            read,
            judged,
            self.verified,
            dataset=DATASET,
            estimator=name,
            function=settings["function"],
            earlier=EARLIER,
            evaluation=EVALUATION,
            posthoc=settings.get("posthoc"),
        )

    def gathered(self, name):
        """Return the predictions of `gather_confidences` for an estimator that reads scores."""
        scored = SCORED.get(name, lambda c: c)
        use = {"split": "test", "answers": "own"}
        uses = [
            {**use, "checkpoint": c, "scored_at": scored(c), "answers_of": scored(c)}
            for c in EVALUATION
        ]
        confidences = gather_confidences(
            of_each({c: pd.concat(parts) for c, parts in self.scores[name].items()}),
            estimator=name,
            uses=uses,
        )
        copies = name.endswith("_copy")
        answers = self.answers_of(EVALUATION)
        return join_labels(
            self.tables["questions", DATASET],
            confidences,
            answers,
            estimator=name,
            copies=copies,
            splits=["test"],
        )


def test_an_import_and_a_run_on_the_same_answers_agree_in_every_cell(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-SECRET0123456789")
    overlay = yaml.safe_load((ROOT / "config" / "as_released.yaml").read_text(encoding="utf-8"))
    settings = over_defaults(overlay, ROOT)
    estimators = settings["estimators"]
    posthoc = {
        name: settings["posthoc"]
        for name, settings in estimators.items()
        if "posthoc" in settings
    }
    release = ReleasedStudy(tmp_path, posthoc)
    with FakeJudge(tmp_path / "judge") as fake:
        release.run_from_beams(settings, fake)
    imported = release.tables["predictions", MODEL, DATASET]
    functions = set(imported["estimator"]) - set(release.scores)
    assert {"self_consistency_posthoc", "gcm_posthoc", "gcm", "end_correct"} < functions
    computed = [release.estimated(name, estimators[name]) for name in sorted(functions)]
    computed += map(release.gathered, release.scores)

    def cells(predictions):
        settings = EvaluationSettings(min_contrast=1)
        return evaluate(predictions, EVALUATION, settings).set_index(CELL)["value"]

    tables = [cells(imported), cells(pd.concat(computed))]
    values = pd.concat(tables, axis=1, keys=["imported", "computed"])
    assert {*values.index.get_level_values("estimator")} == functions | release.scores.keys()
    assert values.notna().all(axis=None)
    pd.testing.assert_series_equal(
        values["imported"], values["computed"], rtol=0, atol=1e-6, check_names=False
    )
    # The confidences have ties, and another isotonic regression gives other values.
    isotonic = {**estimators["gcm_posthoc"], "posthoc": "isotonic_merged"}
    merged = cells(release.estimated("gcm_posthoc", isotonic))
    assert (merged - values.loc[merged.index, "imported"]).abs().max() > 1e-3
