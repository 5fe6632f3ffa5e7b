"""The studies of docs/your-models.md, your-estimator.md and tutorial.md, run as shown."""

import re

import pandas as pd
import pytest
import yaml
from programs import python
from tiny_models import save_tiny
from workflow_runs import ROOT, planned, snakemake

from persistcal.store import artifacts


def first_block(page, kind, start):
    """Return the first code block of a kind in a page that begins with `start`."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return next(code for code in blocks if code.startswith(start))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The documented files, and checkpoints with random weights."""
    folder = tmp_path_factory.mktemp("extending")
    model = first_block("your-models.md", "yaml", "# mine.yaml")
    questions = first_block("formats.md", "json", "{")
    estimator = first_block("your-estimator.md", "python", "# estimators/brevity.py")
    brevity = first_block("your-estimator.md", "yaml", "# brevity.yaml")
    verifier = first_block("your-estimator.md", "yaml", "verifiers:")
    study = yaml.safe_load(model) | {"estimators": yaml.safe_load(brevity)["estimators"]}
    study["study"] |= yaml.safe_load(brevity)["study"]
    (folder / "mine.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    (folder / "critic.yaml").write_text(verifier)
    (folder / "critic.txt").write_text("{question} {answer} Correct:")
    (folder / "quiz.jsonl").write_text(questions)
    (folder / "estimators").mkdir()
    (folder / "estimators" / "brevity.py").write_text(estimator)
    for seed, revision in enumerate(("step100", "step200", "step300")):
        path = folder / "checkpoints" / "mine" / revision
        save_tiny(path, seed=seed)
    return folder


def test_the_documented_study_is_planned(folder):
    output = snakemake(folder, "-n", configs=[folder / "mine.yaml"])
    jobs = planned(output)
    expected = {
        **{"prepare_questions": 1, "resolve_checkpoint": 3, "fetch_checkpoint": 3},
        **{"generate_beams": 3, "judge_answers": 3, "estimate_confidences": 3},
    }
    assert {name: jobs.get(name) for name in expected} == expected
    assert not any(name.startswith("train_") for name in jobs)


def test_the_documented_estimator_runs_and_an_edit_of_it_reruns_its_job(folder):
    target = "results/mine/predictions/mine/quiz/brevity.parquet"
    (folder / "quick.yaml").write_text("decoding: {n_beams: 3, max_new_tokens: 4}")
    configs = [folder / "mine.yaml", folder / "quick.yaml"]
    snakemake(folder, "-c1", target, configs=configs)
    predictions = artifacts.read(folder / target, artifacts.PREDICTIONS)
    for checkpoint in ("middle", "end"):
        path = folder / f"results/mine/clusters/mine/{checkpoint}/quiz/test.parquet"
        clusters = artifacts.read(path, artifacts.CLUSTERS)
        top = clusters[clusters["cluster"] == 0].set_index("question_id")["answer"]
        top = top[top.index.isin(["4", "5", "6"])]  # the test questions, by their rows
        rows = predictions[predictions["checkpoint"] == checkpoint]
        assert len(rows) == len(top) > 0
        for row in rows.itertuples():
            assert row.confidence == pytest.approx(1 / len(top[row.question_id].split()))
    assert "Nothing to be done" in snakemake(folder, "-n", target, configs=configs)
    function = folder / "estimators" / "brevity.py"
    function.write_text(function.read_text().replace("return 1 /", "return 0.5 /"))
    changed = snakemake(folder, "-n", target, configs=configs)
    assert planned(changed) == {"estimate_confidences": 1, "join_labels": 1}


def test_a_missing_file_is_refused_before_anything_runs(folder):
    changes = folder / "wrong.yaml"
    changes.write_text("estimators: {brevity: {function: estimators/brief.py}}")
    target = "results/mine/predictions/mine/quiz/brevity.parquet"
    configs = [folder / "mine.yaml", changes]
    output = snakemake(folder, "-n", target, configs=configs, check=False)
    assert "estimators/brief.py does not exist; correct the estimator's function" in output


def test_the_documented_verifier_is_planned(folder):
    target = "results/mine/predictions/mine/quiz/critic.parquet"
    configs = [folder / "mine.yaml", folder / "critic.yaml"]
    jobs = planned(snakemake(folder, "-n", target, configs=configs))
    assert jobs["score_with_verifier"] == jobs["estimate_confidences"] == 1
    assert jobs["generate_beams"] == 2  # the evaluation checkpoints
    assert "fetch_adapter" not in jobs


def test_the_documented_questions_have_every_split(folder):
    rows = pd.read_json(folder / "quiz.jsonl", lines=True)
    assert rows["split"].value_counts().to_dict() == {"test": 3, "few_shot": 2, "train": 1}


def test_the_model_of_the_tutorial_changes_as_the_page_shows(tmp_path):
    (tmp_path / "questions.py").write_text(first_block("tutorial.md", "py", "# questions.py"))
    (tmp_path / "mine.yaml").write_text(first_block("tutorial.md", "yaml", "# mine.yaml"))
    (tmp_path / "resources").symlink_to(ROOT / "resources")
    python("questions.py", folder=tmp_path)
    target = "results/mine/contrast_sets.csv"
    snakemake(tmp_path, "-c2", target, configs=[tmp_path / "mine.yaml"])
    [pair] = pd.read_csv(tmp_path / target).to_dict("records")
    shown = f"{pair['improvement']} gained and {pair['regression']} lost questions"
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert shown in " ".join(text.split())
