"""With every choice as released, an import and a run of ours on the same answers agree."""

import pandas as pd
import pytest
import yaml
from estimation import of_each, predictions, with_splits
from gather_confidences import gather_confidences
from join_labels import join_labels
from release_archive import DATASETS, MODELS, SEEDS, Release
from release_import import tables_of
from workflow_runs import ROOT

from persistcal.answers.clusters import label_predictions, take_answers
from persistcal.evaluation.evaluate import evaluate
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store.artifacts import ANSWERS
from study.config_files import over_defaults
from study.released import OVERLAY

pytestmark = pytest.mark.slow
MODEL, DATASET = "a", "triv"
EARLIER, EVALUATION = (list(MODELS[MODEL][group]) for group in ("earlier", "evaluation"))
# Of the release's confidences: which checkpoint scored whose answers, at checkpoint c.
SCORED = {"non_oracle_copy": lambda c: EARLIER[-1]}
CELL = ["train_dataset", "estimator", "seed", "conditioning", "scope", "metric"]


class AsReleased:
    """The tables of a release whose confidences are sixteenths, and what models gave."""

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

    def of(self, kind, checkpoints):
        return of_each({c: self.tables[kind, MODEL, DATASET, c] for c in checkpoints})

    def answers_at(self, checkpoint):
        """The predictions of a checkpoint with their labels, as `judge_answers` gives them."""
        place = MODEL, DATASET, checkpoint
        asked, clusters = self.tables["questions", DATASET], self.tables["clusters", *place]
        taken = take_answers(asked, clusters)
        labelled = label_predictions(taken, self.tables["labels", *place])
        return with_splits(labelled, asked)[["split", *ANSWERS.schema.names]]

    def answers_of(self, checkpoints):
        return of_each({c: self.answers[c] for c in checkpoints})

    def estimated(self, name, about):
        """The predictions of `estimate_confidences` for an estimator."""
        every = [*EARLIER, *EVALUATION]
        judged = every if "posthoc" in about else EVALUATION
        read = every if {"posthoc", "last_earlier"} & {*about, *about["reads"]} else EVALUATION
        return predictions(
            (
                self.tables["questions", DATASET],
                *(self.of(kind, read) for kind in ("beams", "clusters")),
                self.answers_of(judged),
            ),
            read,
            judged,
            self.verified,
            dataset=DATASET,
            estimator=name,
            function=about["function"],
            earlier=EARLIER,
            evaluation=EVALUATION,
            posthoc=about.get("posthoc"),
        )

    def gathered(self, name):
        """Those of `gather_confidences` for an estimator that reads scores."""
        scored = SCORED.get(name, lambda c: c)
        uses = [
            {"checkpoint": c, "scored_at": scored(c), "answers": "own", "answers_of": scored(c)}
            for c in EVALUATION
        ]
        confidences = gather_confidences(
            of_each({c: pd.concat(parts) for c, parts in self.scores[name].items()}),
            estimator=name,
            uses=uses,
        )
        answers, copies = self.answers_of(EVALUATION), name.endswith("_copy")
        return join_labels(
            confidences, answers[answers["split"] == "test"], estimator=name, copies=copies
        )


def test_an_import_and_a_run_on_the_same_answers_agree_in_every_cell(tmp_path):
    overlay = yaml.safe_load((ROOT / OVERLAY).read_text(encoding="utf-8"))
    known = over_defaults(overlay, ROOT)["estimators"]
    posthoc = {name: about["posthoc"] for name, about in known.items() if "posthoc" in about}
    release = AsReleased(tmp_path, posthoc)
    imported = release.tables["predictions", MODEL, DATASET]
    functions = set(imported["estimator"]) - set(release.scores)
    assert {"self_consistency_posthoc", "gcm_posthoc", "gcm", "end_correct"} < functions
    ours = [release.estimated(name, known[name]) for name in sorted(functions)]
    ours += map(release.gathered, release.scores)

    cells = [
        evaluate(predictions, EVALUATION, EvaluationSettings(min_contrast=1)).set_index(CELL)[
            "value"
        ]
        for predictions in (imported, pd.concat(ours))
    ]
    both = pd.concat(cells, axis=1, keys=["imported", "ours"])
    # 12 estimators of adapters with three seeds and their mean, 7 others with one and its
    # mean; 8 metrics on contrast sets, conditioned in two ways, and 3 on all questions
    assert len(both) == (12 * (len(SEEDS) + 1) + 7 * 2) * (2 * 8 + 3)
    assert both.notna().all(axis=None)
    pd.testing.assert_series_equal(
        both["imported"], both["ours"], rtol=0, atol=1e-6, check_names=False
    )
    # The ties are there, and the other isotonic regression would show.
    about = {**known["gcm_posthoc"], "posthoc": "isotonic_merged"}
    merged = evaluate(
        release.estimated("gcm_posthoc", about),
        EVALUATION,
        EvaluationSettings(min_contrast=1),
    )
    merged = merged.set_index(CELL)["value"]
    assert (merged - both.loc[merged.index, "imported"]).abs().max() > 1e-3
