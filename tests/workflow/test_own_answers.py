"""The example of answers of one's own, from the file to the page."""

import pandas as pd
from workflow_runs import ROOT, planned, snakemake


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
