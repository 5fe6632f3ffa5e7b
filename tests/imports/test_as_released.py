"""With every choice as released, an import and a run of ours on the same answers agree."""

import copy

import pandas as pd
import pytest
import yaml
from estimation import of_each, predictions
from gather_confidences import gather_confidences
from release_archive import DATASETS, MODELS, SEEDS, Release, pack
from release_import import run_import
from workflow_runs import ROOT

from persistcal.answers.predictions import label_predictions, take_predictions
from persistcal.evaluation.evaluate import evaluate
from persistcal.store import artifacts
from study.defaults import over_defaults
from study.released import OVERLAY

pytestmark = pytest.mark.slow
MODEL, DATASET = "a", "triv"
EARLIER, EVALUATION = (list(MODELS[MODEL][group]) for group in ("earlier", "evaluation"))
# Of the release's confidences: which checkpoint scored whose answers, at checkpoint c.
SCORED = {"non_oracle_copy": lambda c: EARLIER[-1]}
CELL = ["train_dataset", "estimator", "seed", "conditioning", "scope", "metric"]


@pytest.fixture(scope="module")
def config():
    overlay = yaml.safe_load((ROOT / OVERLAY).read_text(encoding="utf-8"))
    return over_defaults(copy.deepcopy(overlay), ROOT)


@pytest.fixture(scope="module")
def released(tmp_path_factory, config):
    """The release, whose confidences are sixteenths, in the folder of its import."""
    root = tmp_path_factory.mktemp("as_released")
    models, datasets = {MODEL: MODELS[MODEL]}, {DATASET: DATASETS[DATASET]}
    release = Release(root, models, datasets, levels=16)
    digest = pack(root, root / "release.tar.zst")
    posthoc = {
        name: about["posthoc"]
        for name, about in config["estimators"].items()
        if "posthoc" in about
    }
    run_import(root, root / "release.tar.zst", digest, models, datasets, posthoc=posthoc)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        yield release


def write_answers():
    """The predictions of every checkpoint with their labels, as `judge_answers` writes them."""
    questions = artifacts.read(f"questions/{DATASET}.parquet", artifacts.QUESTIONS)
    for checkpoint in [*EARLIER, *EVALUATION]:
        place = f"{MODEL}/{checkpoint}/{DATASET}.parquet"
        clusters = artifacts.read(f"clusters/{place}", artifacts.CLUSTERS)
        predictions = pd.concat(
            take_predictions(questions, clusters, split=split).assign(split=split)
            for split in ("train", "test")
        )
        labels = artifacts.read(f"labels/{place}", artifacts.LABELS)
        answers = label_predictions(predictions, labels)[artifacts.ANSWERS.schema.names]
        artifacts.write(answers, f"own/{checkpoint}.parquet", artifacts.ANSWERS)


def write_confidences(release):
    """Write what models gave; return by estimator the checkpoints that have its scores."""
    verified, estimators = [], {}
    for (_, _, _, estimator, seed, checkpoint), values in release.numbers.items():
        if "transfer" in estimator:
            continue
        rows = [(f"{DATASET}-{index}", p) for index, p in values.items()]
        frame = pd.DataFrame(rows, columns=["question_id", "confidence"])
        if estimator == "gcm":
            verified.append(frame.assign(checkpoint=checkpoint))
            continue
        key = {"answers_of": checkpoint, "recipe": estimator, "trained_on": "some"}
        scores = frame.assign(**key, train_dataset=DATASET, seed=seed)
        estimators.setdefault(estimator, {}).setdefault(checkpoint, []).append(scores)
    artifacts.write(pd.concat(verified), "own/verified.parquet", artifacts.VERIFIED)
    for estimator, scored in estimators.items():
        for checkpoint, parts in scored.items():
            path = f"own/scores/{estimator}/{checkpoint}.parquet"
            artifacts.write(pd.concat(parts), path, artifacts.SCORES)
    return {estimator: list(scored) for estimator, scored in estimators.items()}


def of_checkpoints(pattern, checkpoints, table):
    """Tables of several checkpoints, one below the other."""
    return of_each({c: artifacts.read(pattern.format(c), table) for c in checkpoints})


def estimated(name, about):
    """The predictions of `estimate_confidences` for an estimator."""
    every = [*EARLIER, *EVALUATION]
    judged = every if "posthoc" in about else EVALUATION
    read = every if {"posthoc", "last_earlier"} & {*about, *about["reads"]} else EVALUATION
    place = f"{MODEL}/{{}}/{DATASET}.parquet"
    tables = (
        artifacts.read(f"questions/{DATASET}.parquet", artifacts.QUESTIONS),
        of_checkpoints(f"beams/{place}", read, artifacts.BEAMS),
        of_checkpoints(f"clusters/{place}", read, artifacts.CLUSTERS),
        of_checkpoints("own/{}.parquet", judged, artifacts.ANSWERS),
    )
    return predictions(
        tables,
        read,
        judged,
        artifacts.read("own/verified.parquet", artifacts.VERIFIED),
        dataset=DATASET,
        estimator=name,
        function=about["function"],
        earlier=EARLIER,
        evaluation=EVALUATION,
        posthoc=about.get("posthoc"),
    )


def gathered(name, checkpoints):
    """Those of `gather_confidences` for an estimator that reads scores."""
    scored = SCORED.get(name, lambda c: c)
    scores = of_checkpoints(f"own/scores/{name}/{{}}.parquet", checkpoints, artifacts.SCORES)
    uses = [
        {"checkpoint": c, "scored_at": scored(c), "answers": "own", "answers_of": scored(c)}
        for c in EVALUATION
    ]
    return gather_confidences(
        scores.assign(answers="own"),
        of_checkpoints("own/{}.parquet", EVALUATION, artifacts.ANSWERS),
        estimator=name,
        evaluation=EVALUATION,
        uses=uses,
        copies=name.endswith("_copy"),
    )


def test_an_import_and_a_run_on_the_same_answers_agree_in_every_cell(released, config):
    imported = artifacts.read(f"predictions/{MODEL}/{DATASET}.parquet", artifacts.PREDICTIONS)
    write_answers()
    scored = write_confidences(released)
    functions = set(imported["estimator"]) - set(scored)
    assert {"self_consistency_posthoc", "gcm_posthoc", "gcm", "end_correct"} < functions
    ours = [estimated(name, config["estimators"][name]) for name in sorted(functions)]
    ours += [gathered(name, checkpoints) for name, checkpoints in scored.items()]

    cells = [
        evaluate(predictions, EVALUATION, min_contrast=1).set_index(CELL)["value"]
        for predictions in (imported, pd.concat(ours))
    ]
    both = pd.concat(cells, axis=1, keys=["imported", "ours"])
    # 12 estimators of adapters with three seeds and their mean, 7 others with one and its
    # mean; 7 metrics on contrast sets, conditioned in two ways, and 3 on all questions
    assert len(both) == (12 * (len(SEEDS) + 1) + 7 * 2) * (2 * 7 + 3)
    assert both.notna().all(axis=None)
    pd.testing.assert_series_equal(
        both["imported"], both["ours"], rtol=0, atol=1e-6, check_names=False
    )
    # The ties are there, and the other isotonic regression would show.
    posthoc = {**config["estimators"]["gcm_posthoc"], "posthoc": "isotonic_merged"}
    merged = evaluate(estimated("gcm_posthoc", posthoc), EVALUATION, min_contrast=1)
    merged = merged.set_index(CELL)["value"]
    assert (merged - both.loc[merged.index, "imported"]).abs().max() > 1e-3
