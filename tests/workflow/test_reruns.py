"""A change reruns all jobs that it affects, and no others."""

import json
import os
import shutil
import time
from importlib import metadata

import pytest
import yaml
from records import content_of
from workflow_runs import ATLAS, ROOT, planned, snakemake

# Jobs that read all estimators of the study; a table only reads the estimators of its rows
SHOWN = {
    **{"collect_results": 1, "make_plain_table": 1, "compare_study": 1, "make_claims": 1},
    **{"make_findings": 1, "measure_subsets": 1, "draw_figure": 1, "make_page": 1},
}
# Jobs that follow a change of any predictions
COLLECTED = {"compare_table": 1, "make_table": 1, **SHOWN}


def evaluated(n):
    """Jobs that follow if the confidences of `n` estimators change."""
    return {"join_labels": n, "evaluate_estimator": n, **COLLECTED}


# Jobs that read the accuracy of the checkpoints
FROM_LABELS = {"compute_accuracies": 1, "make_plain_table": 1, "draw_figure": 1}


def rerun_jobs(output):
    """Return the planned jobs per rule; tables and figures, which features add, count once."""
    jobs = planned(output)
    return jobs | {rule: 1 for rule in ("make_plain_table", "draw_figure") if rule in jobs}


def planned_with(study, tmp_path, change):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(yaml.safe_dump(change))
    return rerun_jobs(snakemake(study, "--dry-run", configs=[*ATLAS, overlay]))


# A further revision of the repository, one more checkpoint of it, and the jobs that find it
OTHER = {"revision": "verifier"}
ONE_MORE = {
    "checkpoints": {"p110": {**OTHER, "label": "110%"}},
    "evaluation": ["p40", "p90", "p100", "p110"],
}
LOOKED_UP = {"resolve_checkpoint": 1, "fetch_checkpoint": 1}


def answered(checkpoints, splits=2):
    """Jobs that answer the questions of the splits at the checkpoints."""
    return dict.fromkeys(
        ["generate_beams", "cluster_answers", "judge_answers"], checkpoints * splits
    )


def test_a_touch_of_all_sources_reruns_nothing(study):
    seconds = time.time()
    for path in [*ROOT.glob("persistcal/**/*.py"), *ROOT.glob("workflow/**/*.py")]:
        os.utime(path, (seconds, seconds))
    assert "Nothing to be done" in snakemake(study, "--dry-run", configs=ATLAS)


def test_the_record_of_a_study_names_its_makers_and_reruns_nothing(study):
    [record] = study.rglob("study.yaml")
    assert "Nothing to be done" in snakemake(study, "--dry-run", configs=[record])
    assert "--configfile" in record.read_text().splitlines()[0]
    made = json.loads(record.with_name("provenance.json").read_text())
    [maker] = made["jobs"]["train_adapters"]
    assert maker["machine"] and maker["torch"] == metadata.version("torch")
    assert set(made["models"]["atlas/p40"]["weights"]) == {"model.safetensors"}
    assert len(made["code"]["train_oracle"]) == 16


def test_another_learning_rate_trains_only_its_recipe(study, tmp_path):
    change = {"estimators": {"oracle": {"recipe": {"learning_rate": 1e-3}}}}
    assert planned_with(study, tmp_path, change) == {
        "train_oracle": 1,
        "score_answers": 3,
        "gather_confidences": 1,
        **evaluated(1),
    }


def test_another_seed_trains_adapters_and_decodes_nothing(study, tmp_path):
    """Both recipes train; the checkpoints, their answers and the other estimators stay."""
    assert planned_with(study, tmp_path, {"training": {"seeds": [17, 18, 19]}}) == {
        "train_non_oracle": 1,
        "train_oracle": 1,
        "score_answers": 2 * 3,
        "gather_confidences": 2,
        **evaluated(2),
    }


def test_a_failed_training_keeps_the_adapters_of_a_study(study, tmp_path):
    folder = shutil.copytree(study, tmp_path / "study")
    adapters = {path: path.read_bytes() for path in folder.rglob("adapter_model.safetensors")}
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("training: {seeds: [17, 18, 19], learning_rate: 1.0e+30}")
    words = ("--cores", "2", "--until", "train_oracle")
    output = snakemake(folder, *words, configs=[*ATLAS, overlay], check=False)
    assert "At least one job did not complete" in output
    assert adapters and all(path.read_bytes() == made for path, made in adapters.items())


def chosen_with(*estimators):
    base = ["end_correct", "self_consistency", "self_consistency_posthoc"]
    base += ["non_oracle", "oracle"]
    return {"study": {"estimators": [*base, *estimators]}}


@pytest.mark.parametrize(
    ("name", "entry", "jobs"),
    [
        ("sequence_probability", {}, {"estimate_confidences": 1}),
        ("sharp", {"recipe": "oracle", "posthoc": "isotonic"}, {"score_answers": 2}),
        ("of_one", {"recipe": {"train_on": ["p40"]}}, {"train_of_one": 1, "score_answers": 3}),
        ("non_oracle_copy", {}, {"score_answers": 1}),
    ],
)
def test_one_more_estimator_costs_only_itself(study, tmp_path, name, entry, jobs):
    change = {**chosen_with(name), "estimators": {name: {"label": name, **entry}}}
    if "estimate_confidences" not in jobs:
        jobs = {**jobs, "gather_confidences": 1}
    assert planned_with(study, tmp_path, change) == {
        **jobs,
        "join_labels": 1,
        "evaluate_estimator": 1,
        **SHOWN,
    }


@pytest.mark.parametrize(
    ("estimator", "jobs"),
    [
        # the test answers of the three evaluation checkpoints
        ("self_consistency", {"judge_answers": 3}),
        # fitted on labelled train answers of the two earlier checkpoints, too
        ("self_consistency_posthoc", {"judge_answers": 3 + 2, "estimate_confidences": 1}),
    ],
)
def test_another_label_reruns_only_estimators_that_are_fitted_on_labels(study, estimator, jobs):
    target = f"out/predictions/atlas/atlas/{estimator}.parquet"
    output = snakemake(
        study,
        target,
        "--dry-run",
        "--forcerun",
        "judge_answers",
        "--rerun-triggers",
        "mtime",
        configs=ATLAS,
    )
    assert planned(output) == {**jobs, "join_labels": 1}


def test_one_more_recipe_in_the_catalogue_costs_nothing(study, tmp_path):
    change = {"recipes": {"other": {"train_on": "all"}}}
    assert planned_with(study, tmp_path, change) == {}


def test_one_more_table_costs_only_itself(study, tmp_path):
    rows = [{"estimator": "end_correct"}, {"estimator": "oracle"}]
    table = {
        "caption": "Two.",
        "layout": "models_as_blocks",
        "conditioning": "odds",
        "columns": {"full": ["auc"]},
        "blocks": [{"rows": rows}],
    }
    change = {"tables": {"two": table}, "study": {"tables": ["oracle_vs_methods", "two"]}}
    assert planned_with(study, tmp_path, change) == {
        "compare_table": 1,
        "make_table": 1,
        # it collects the table's tests
        "collect_results": 1,
        "make_plain_table": 1,
        "draw_figure": 1,
        "make_page": 1,
    }


def test_another_version_of_a_checkpoint_reruns_only_its_answers(study, tmp_path):
    """The earlier checkpoints' answers and adapters stay, and the other two's answers."""
    change = {"models": {"atlas": {"checkpoints": {"p100": OTHER}}}}
    assert planned_with(study, tmp_path, change) == {
        **LOOKED_UP,
        **answered(1),
        "train_oracle": 1,
        # the oracle's adapters are new, and p100 is scored by the non-oracle ones too
        "score_answers": 3 + 1,
        "gather_confidences": 2,
        # end_correct, self_consistency and its post-hoc read all evaluation checkpoints
        "estimate_confidences": 3,
        "list_contrast_sets": 1,
        **evaluated(5),
        **FROM_LABELS,
    }


def test_one_more_checkpoint_keeps_the_answers_of_the_others(study, tmp_path):
    assert planned_with(study, tmp_path, {"models": {"atlas": ONE_MORE}}) == {
        **LOOKED_UP,
        **answered(1),
        "train_oracle": 1,
        "score_answers": 4 + 1,
        "gather_confidences": 2,
        "estimate_confidences": 3,
        "list_contrast_sets": 1,
        **evaluated(5),
        **FROM_LABELS,
    }


def test_only_one_more_checkpoint_is_asked_about_its_answers(study, tmp_path):
    """The checkpoints that P(True) has asked about their answers are not asked again."""
    target = "out/predictions/atlas/atlas/p_true.parquet"
    folder, overlay = tmp_path / "study", tmp_path / "overlay.yaml"
    shutil.copytree(study, folder)
    assert planned(snakemake(folder, target, "--dry-run", configs=ATLAS)) == {
        "rate_at_checkpoint": 3,
        "gather_confidences": 1,
        "join_labels": 1,
    }
    snakemake(folder, target, "--cores", "1", configs=ATLAS)
    overlay.write_text(yaml.safe_dump({"models": {"atlas": ONE_MORE}}))
    assert planned(snakemake(folder, target, "--dry-run", configs=[*ATLAS, overlay])) == {
        **LOOKED_UP,
        **answered(1, splits=1),  # the test questions: P(True) is not trained
        "rate_at_checkpoint": 1,
        "gather_confidences": 1,
        "join_labels": 1,
    }


FOLDERS = "atlas config envs persistcal profiles reproduce study tools workflow".split()
WITH_METRICS = {"evaluate_estimator": 5, **COLLECTED}


@pytest.mark.parametrize(
    ("module", "jobs"),
    [
        ("evaluation/smooth_ece", WITH_METRICS),
        (
            "training/train",
            {
                "train_non_oracle": 1,
                "train_oracle": 1,
                "score_answers": 6,
                "gather_confidences": 2,
                **evaluated(2),
            },
        ),
    ],
)
def test_an_edited_module_reruns_the_scripts_that_import_it(study, tmp_path, module, jobs):
    """A copy of the project reruns nothing."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "Snakefile", tmp_path)
    dry_run = ["--dry-run", "--snakefile", tmp_path / "Snakefile"]
    assert "Nothing to be done" in snakemake(study, *dry_run, configs=ATLAS)
    with (tmp_path / "persistcal" / f"{module}.py").open("a") as file:
        file.write("\nEDITED = True\n")
    assert rerun_jobs(snakemake(study, *dry_run, configs=ATLAS)) == jobs


@pytest.mark.parametrize(
    ("step", "made", "rule"),
    [
        ("scoring", "scores/atlas/p40/atlas/oracle/own", "score_answers"),
        ("decoding", "beams/atlas/p40/atlas/test", "generate_beams"),
    ],
)
def test_shards_make_the_same_file(study, tmp_path, step, made, rule):
    shutil.copytree(study, tmp_path / "study")
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(yaml.safe_dump({step: {"shards": 3}}))
    made = f"out/{made}.parquet"
    output = snakemake(tmp_path / "study", "--cores", "2", made, configs=[*ATLAS, overlay])
    merge = {"scoring": "merge_scores", "decoding": "merge_beams"}[step]
    assert planned(output) == {rule: 3, merge: 1}
    assert content_of(tmp_path / "study" / made) == content_of(study / made)
