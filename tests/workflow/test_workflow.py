"""The whole study at a size for tests, run and rerun as a user would."""

import base64
import json
import os
import shutil
import time

import pandas as pd
import pytest
import release_archive
import warm_python
import yaml
from like_generate import assert_decodes_like_generate
from release_archive import DATASETS, MODELS, Release, pack, write_digest
from workflow_runs import ATLAS, ROOT, snakemake

from persistcal.models.load import load_model, load_tokenizer
from persistcal.models.prompts import few_shot_prefix, question_suffix
from persistcal.store import artifacts


def test_the_study_has_metrics_tables_and_figures_of_its_estimators(study):
    metrics = artifacts.read_csv(study / "out" / "metrics.csv", artifacts.METRICS)
    fitted = {"self_consistency_posthoc", "non_oracle", "oracle"}
    assert set(metrics["estimator"]) == {"end_correct", "self_consistency", *fitted}
    of_oracle = metrics[(metrics["estimator"] == "oracle") & (metrics["metric"] == "auc")]
    # contrast under two conditionings and full set, each for two seeds and their mean
    assert len(of_oracle) == 3 * 3
    assert of_oracle["value"].notna().all()  # some contrast sets are not empty
    assert len(pd.read_csv(study / "out" / "tables" / "oracle_vs_methods.csv")) == 5 * 10
    tex = (study / "out" / "tables" / "oracle_vs_methods.tex").read_text()
    assert all(row in tex for row in ("End-correct", "Non-oracle training", "Oracle training"))
    for name in ("accuracy", "full_vs_contrast"):
        assert (study / "out" / "figures" / f"{name}.png").stat().st_size > 10_000


def test_jobs_have_logs_and_leave_no_partial_files(study):
    assert "correct" in (study / "out/logs/judge_answers/atlas/p100/atlas/test.log").read_text()
    assert not list((study / "out").rglob("*.part"))


def test_a_shipped_checkpoint_decodes_like_generate(study):
    """Beams equal those of transformers' generate, one question at a time."""
    record = json.loads((study / "out" / "checkpoints" / "atlas" / "p100.json").read_text())
    model = load_model(str(study / record["repo"]))
    tokenizer = load_tokenizer(str(study / record["repo"]))
    questions = artifacts.read(study / "out/questions/atlas.parquet", artifacts.QUESTIONS)
    shown = questions[questions["split"] == "few_shot"].sort_values("index")
    prefix = few_shot_prefix(zip(shown["question"], shown["references"].str[0], strict=True))
    asked = questions.loc[questions["split"] == "test", "question"].head(12)
    assert_decodes_like_generate(
        model, tokenizer, prefix, [question_suffix(q) for q in asked], max_new_tokens=16
    )


def test_the_report_has_the_page_and_every_table_and_figure(study):
    snakemake(study, "--report", "report.html", configs=ATLAS)
    report, out = (study / "report.html").read_text(), study / "out"
    made = [*out.glob("tables/*"), *out.glob("figures/*.png"), out / "report" / "index.html"]
    assert len(made) > 10
    for path in made:
        assert base64.b64encode(path.read_bytes()).decode() in report, path


def test_an_interrupted_study_continues_without_its_finished_jobs(tmp_path):
    """Kill everything in the middle; the finished jobs stay finished."""
    words = ["--cores", "2", "--snakefile", ROOT / "Snakefile", "--directory", tmp_path]
    words += ["--profile", ROOT / "profiles" / "laptop", "--configfile", *ATLAS]
    running = warm_python.start("snakemake", words, [os.devnull, os.devnull])
    labels = tmp_path / "out" / "labels" / "atlas"
    deadline = time.monotonic() + 600
    while not list(labels.glob("*/atlas/*.parquet")) and time.monotonic() < deadline:
        assert running.join(0) is None, "the study ended before it was interrupted"
        time.sleep(0.2)
    warm_python.kill(running)
    [first, *_] = labels.glob("*/atlas/*.parquet")
    made = [tmp_path / "out/questions/atlas.parquet"]
    made.append(tmp_path / "out/beams" / first.relative_to(tmp_path / "out/labels"))
    finished = {path: path.stat().st_mtime_ns for path in made}
    snakemake(tmp_path, "--unlock", configs=ATLAS)
    snakemake(tmp_path, "--cores", "2", "--until", "generate_beams", configs=ATLAS)
    assert (tmp_path / "out" / "beams" / "atlas" / "p100" / "atlas" / "test.parquet").exists()
    assert {path: path.stat().st_mtime_ns for path in finished} == finished


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        ({"study": {"models": ["atlass"]}}, "did you mean 'atlas'?"),
        (
            {"prompts": {"confidence": "nowhere.txt"}},
            "prompts.confidence is nowhere.txt, and there is no such file",
        ),
    ],
)
def test_a_wrong_config_stops_before_any_work(tmp_path, overlay, message):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(yaml.safe_dump(overlay))
    output = snakemake(tmp_path, "--dry-run", configs=[*ATLAS, wrong], check=False)
    assert message in output
    assert "job" not in output.split(message)[1].lower()


def test_a_split_larger_than_the_data_stops_the_first_job(tmp_path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(yaml.safe_dump({"datasets": {"atlas": {"n_test": 10**6}}}))
    output = snakemake(tmp_path, "--cores", "2", configs=[*ATLAS, wrong], check=False)
    assert "lower n_train or n_test" in output
    assert not (tmp_path / "out" / "beams").exists()


def test_a_release_with_a_hole_gives_the_tables_of_the_rest(tmp_path, monkeypatch):
    """The candidates of a model for one dataset are missing: `--` cells and a list."""
    adapters = {name: release_archive.ADAPTERS[name] for name in ("non_oracle", "oracle")}
    monkeypatch.setattr(release_archive, "ADAPTERS", adapters)
    monkeypatch.setattr(release_archive, "SEEDS", [17])
    entry, datasets = MODELS["b"], {name: DATASETS[name] for name in ("triv", "jeop")}
    release = Release(tmp_path / "tree", {"b": entry}, datasets)
    folder = entry["repo"].split("/")[-1]
    for revision in entry["evaluation"].values():
        shutil.rmtree(release.tree / "jeop" / folder / revision)
    archive = tmp_path / "release.tar.zst"
    pack(tmp_path / "tree", archive)
    write_digest(archive)
    revisions = {**entry["earlier"], **entry["evaluation"]}
    described = {
        "repo": entry["repo"],
        "label": "b",
        "checkpoints": {c: {"revision": revision} for c, revision in revisions.items()},
        **{key: list(entry[key]) for key in ("earlier", "evaluation")},
    }
    chosen = {"models": ["b"], "datasets": list(datasets), "complete_tables": True}
    config = {
        "results": "out",
        "models": {"b": described},
        "datasets": {name: {"min_contrast": 2, **d} for name, d in datasets.items()},
        "study": {"source": "release", "archive": str(archive), **chosen},
        "training": {"seeds": [17]},
        "evaluation": {"replicates": 200, "conditioning": ["odds"]},
    }
    (tmp_path / "release.yaml").write_text(yaml.safe_dump(config))
    made = ["tables/oracle_vs_methods.tex", "figures/full_vs_contrast.png", "report/index.html"]
    targets = [f"out/{name}" for name in made]
    snakemake(tmp_path, "--cores", "2", *targets, configs=[tmp_path / "release.yaml"])
    missing = pd.read_csv(tmp_path / "out" / "release" / "missing.csv")
    assert ((missing["model"] == "b") & (missing["dataset"] == "jeop")).any()
    cells = pd.read_csv(tmp_path / "out" / "tables" / "oracle_vs_methods.csv")
    in_hole = (cells["model"] == "b") & (cells["dataset"] == "jeop")
    consistency = cells["estimator"].str.startswith("self_consistency")
    assert cells.loc[in_hole & consistency, "value"].isna().all()
    assert cells.loc[in_hole & (cells["estimator"] == "oracle"), "value"].notna().any()
    assert cells.loc[~in_hole & consistency, "value"].notna().any()
    assert "--" in (tmp_path / targets[0]).read_text()
