"""The example of answers of one's own, from the file to the page."""

import pandas as pd
import yaml
from workflow_runs import ROOT, planned, snakemake

from persistcal import artifacts


def test_the_example_runs_to_metrics_tables_figures_and_page(tmp_path):
    (tmp_path / "config").symlink_to(ROOT / "config")
    (tmp_path / "resources").symlink_to(ROOT / "resources")
    fast = tmp_path / "fast.yaml"
    fast.write_text("evaluation: {replicates: 100}\n")
    configs = [ROOT / "config" / "own_answers.yaml", fast]
    snakemake(tmp_path, "--cores", "2", configs=configs)
    out = tmp_path / "results" / "own_answers"
    metrics = pd.read_csv(out / "metrics.csv")
    assert set(metrics["estimator"]) == {"end_correct", "self_consistency", "semantic_entropy"}
    assert metrics["value"].notna().all()
    for made in ("tables/all_estimators.tex", "figures/accuracy.png", "report/index.html"):
        assert (out / made).stat().st_size > 0
    assert planned(snakemake(tmp_path, "-n", configs=configs)) == {}


def test_the_answers_of_a_study_give_its_metrics_again(study, tmp_path):
    """A finished study's beams, written out as somebody's own answers and read in again."""
    out = study / "out"
    questions = artifacts.read(out / "questions" / "atlas.parquet", artifacts.QUESTIONS)
    asked = questions.loc[
        ~questions["excluded"], ["question_id", "split", "question", "references"]
    ]
    parts = []
    for path in sorted((out / "beams" / "atlas").glob("*/atlas.parquet")):
        beams = artifacts.read(path, artifacts.BEAMS).merge(asked, on="question_id")
        parts.append(beams.assign(checkpoint=path.parent.name, model="atlas", dataset="atlas"))
    rows = pd.concat(parts).rename(columns={"beam": "sample", "text": "answer"})
    rows = rows.merge(questions[["question_id", "index"]]).sort_values(["index", "sample"])
    names = ["model", "checkpoint", "dataset", "question_id", "question", "references"]
    names += ["answer", "sample", "logprob", "split"]
    rows[names].to_json(
        tmp_path / "answers.jsonl", orient="records", lines=True, double_precision=15
    )
    evaluation = ["p40", "p50", "p90", "p100"]
    mine = {
        "results": "out",
        "models": {
            "atlas": {"label": "A", "earlier": ["p10", "p20", "p30"], "evaluation": evaluation}
        },
        "datasets": {"atlas": {"label": "B", "min_contrast": 1}},
        "equivalence": {"backend": "lexical"},
        "judge": {"backend": "lexical"},
        "evaluation": {"replicates": 200},
        "study": {
            "answers": "answers.jsonl",
            "models": ["atlas"],
            "datasets": ["atlas"],
            "estimators": ["end_correct", "self_consistency", "self_consistency_posthoc"],
        },
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(mine))
    snakemake(tmp_path, "out/metrics.csv", "--cores", "2", configs=[tmp_path / "mine.yaml"])
    key = ["estimator", "seed", "conditioning", "scope", "metric"]
    theirs, ours = (
        artifacts.read_csv(path / "metrics.csv", artifacts.METRICS).set_index(key)["value"]
        for path in (out, tmp_path / "out")
    )
    assert len(ours) > 30
    pd.testing.assert_series_equal(
        ours.sort_index(), theirs.loc[ours.index].sort_index(), rtol=1e-12
    )
