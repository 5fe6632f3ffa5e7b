"""A study of samples with the field's estimators, end to end."""

import shutil

import pandas as pd
import yaml
from workflow_runs import ATLAS, snakemake

from persistcal.store import artifacts

ESTIMATORS = "self_consistency perplexity mean_token_entropy semantic_entropy".split()
ESTIMATORS += ["degree_matrix", "p_true", "verbalised"]


def test_every_estimator_of_samples_rates_a_study_of_samples(study, tmp_path):
    """Checkpoints of the small atlas study answer again, with samples."""
    shutil.copytree(study, tmp_path / "study")
    sampled = {
        "decoding": {"strategy": "sample", "n_samples": 5, "temperature": 0.5},
        "models": {"atlas": {"evaluation": ["p40", "p100"]}},
        # of all estimators here, claims are about this one
        "study": {"estimators": ["perplexity"], "tables": ["all_estimators"]},
    }
    (tmp_path / "overlay.yaml").write_text(yaml.safe_dump(sampled))
    out = tmp_path / "study" / "out"
    targets = ["out/claims.csv"]
    targets += [f"out/predictions/atlas/atlas/{name}.parquet" for name in ESTIMATORS]
    configs = [*ATLAS, tmp_path / "overlay.yaml"]
    snakemake(tmp_path / "study", "--cores", "2", *targets, configs=configs)
    beams = artifacts.read(out / "beams/atlas/p40/atlas/test.parquet", artifacts.BEAMS)
    assert (beams.groupby("question_id").size() == 5).all()
    assert beams.duplicated(["question_id", "text"]).any()  # beams are all different
    clusters = artifacts.read(out / "clusters/atlas/p40/atlas/test.parquet", artifacts.CLUSTERS)
    fifths = clusters["probability"] * 5
    assert (fifths - fifths.round()).abs().max() < 1e-9
    rated = pd.concat(
        pd.read_parquet(out / "predictions" / "atlas" / "atlas" / name)
        for name in (f"{estimator}.parquet" for estimator in ESTIMATORS)
    )
    assert rated["confidence"].between(0, 1).all()

    # Two halves of two samples are crossed, by each estimator
    halves = [
        artifacts.read(out / f"beams/atlas/p100/atlas/{half}.parquet", artifacts.BEAMS)
        for half in ("half1", "half2")
    ]
    whole = artifacts.read(out / "beams/atlas/p100/atlas/test.parquet", artifacts.BEAMS)
    for half in halves:
        assert (half.groupby("question_id").size() == 2).all()
    drawn = ["question_id", "text", "logprob"]
    pairs = pd.concat(halves)[drawn].value_counts()
    assert (pairs <= whole[drawn].value_counts()[pairs.index]).all()
    assert (rated.groupby("estimator")["ask"].unique().map(set) == {0, 101, 102}).all()
    claims = artifacts.read_csv(out / "claims.csv", artifacts.CLAIMS)
    assert set(claims["basis"]) == {"", "cross"}
    assert not claims.loc[claims["asks"] == "one ask", "word"].any()
