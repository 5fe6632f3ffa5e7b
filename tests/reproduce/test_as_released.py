"""With every choice as released, an import and a run on the same answers agree."""

import pandas as pd
import pytest
import yaml
from estimation import of_each, predictions, with_splits
from gather_confidences import gather_confidences
from join_labels import join_labels
from measuring import evaluate
from release_archive import DATASETS, MODELS, Release
from release_import import tables_of
from workflow_runs import ROOT

from persistcal.answers.clusters import label_predictions, take_answers
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store.artifacts import ANSWERS
from study.config_files import over_defaults

pytestmark = pytest.mark.slow
MODEL, DATASET = "a", "triv"
EARLIER, EVALUATION = (list(MODELS[MODEL][group]) for group in ("earlier", "evaluation"))
# A copy is scored once: the checkpoint that scored the answers of checkpoint c.
SCORED = {"non_oracle_copy": lambda c: EARLIER[-1]}
CELL = ["train_dataset", "estimator", "seed", "conditioning", "scope", "metric"]


class ReleasedStudy:
    """The tables of a release with confidences in sixteenths, and the results of a run."""

    def __init__(self, folder, posthoc):
        chosen = {MODEL: MODELS[MODEL]}, {DATASET: DATASETS[DATASET]}
        release = Release(folder, *chosen, levels=16)
        self.tables = tables_of(release.tree, *chosen, posthoc)
        self.answers = {c: self.answers_at(c) for c in [*EARLIER, *EVALUATION]}
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


def test_an_import_and_a_run_on_the_same_answers_agree_in_every_cell(tmp_path):
    overlay = yaml.safe_load((ROOT / "config" / "as_released.yaml").read_text(encoding="utf-8"))
    estimators = over_defaults(overlay, ROOT)["estimators"]
    posthoc = {
        name: settings["posthoc"]
        for name, settings in estimators.items()
        if "posthoc" in settings
    }
    release = ReleasedStudy(tmp_path, posthoc)
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
