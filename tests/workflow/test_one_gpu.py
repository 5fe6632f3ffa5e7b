"""The study on one GPU with miniature repositories, from questions to the table."""

import mini_hub
import numpy as np
import pandas as pd
import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
from workflow_runs import ROOT, snakemake

from persistcal.confidence.verbalised import confidence_of, digit_tokens
from persistcal.models.prompts import confidence_prompt
from persistcal.questions.labels import benchmark_form
from persistcal.store import artifacts

CONFIGS = [ROOT / "config/one_gpu.yaml", ROOT / "tests/config/one_gpu_mini.yaml"]
REPOS = {"smollm3-3b": mini_hub.SMOLLM, "pythia-1.4b": mini_hub.PYTHIA}
LAST = {"smollm3-3b": "step3440000", "pythia-1.4b": "step143000"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the complete study."""
    folder = tmp_path_factory.mktemp("one_gpu")
    mini_hub.write_hub_of_one_gpu(folder)
    # one process has all copies, as on one GPU
    snakemake(folder, "results/one_gpu/tables/oracle_vs_methods.tex", configs=CONFIGS)
    return folder


def read(folder, path, table):
    return artifacts.read(folder / "results/one_gpu" / path, table)


def test_labels_are_matches_with_an_alias(folder):
    labels = pd.concat(
        read(folder, path.relative_to(folder / "results/one_gpu"), artifacts.LABELS)
        for path in sorted((folder / "results/one_gpu/labels").rglob("*.parquet"))
    )
    assert set(labels["source"]) == {"exact_match"}
    shares = labels["label"].value_counts(normalize=True)
    assert shares["correct"] > 0.2 and shares["incorrect"] > 0.2
    questions = read(folder, "questions/triviaqa.parquet", artifacts.QUESTIONS)
    references = questions.set_index("question_id")["references"]
    for path in sorted((folder / "results/one_gpu/labels").rglob("*.parquet"))[:2]:
        place = path.relative_to(folder / "results/one_gpu/labels")
        rows = artifacts.read(path, artifacts.LABELS).merge(
            read(folder, f"clusters/{place}", artifacts.CLUSTERS), on=["question_id", "cluster"]
        )
        for row in rows.itertuples():
            accepted = {benchmark_form(text) for text in references[row.question_id]}
            assert (row.label == "correct") == (benchmark_form(row.answer) in accepted - {""})


@pytest.mark.parametrize("model", REPOS)
def test_adapters_score_with_peft_as_the_study_does(folder, model):
    source = (
        folder
        / "hub"
        / REPOS[model]
        / {"smollm3-3b": "stage1-step-3440000", "pythia-1.4b": "step143000"}[model]
    )
    tokenizer = AutoTokenizer.from_pretrained(source)
    [adapter] = (folder / "results/one_gpu/adapters" / model / "triviaqa/oracle").glob(
        "*/seed17"
    )
    base = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    adapted = PeftModel.from_pretrained(base, adapter).eval()
    weights = [p for name, p in adapted.named_parameters() if "lora_B" in name]
    assert all(weight.abs().max() > 0 for weight in weights)  # each layer has learnt

    predictions = read(
        folder, f"predictions/{model}/triviaqa/oracle.parquet", artifacts.PREDICTIONS
    )
    asked = predictions[predictions["checkpoint"] == LAST[model]].head(5)
    answers = read(
        folder, f"answers/{model}/{LAST[model]}/triviaqa/test.parquet", artifacts.ANSWERS
    )
    questions = read(folder, "questions/triviaqa.parquet", artifacts.QUESTIONS)
    rows = asked.merge(answers, on="question_id").merge(questions, on="question_id")
    template = (ROOT / "config/prompts/confidence.txt").read_text()
    for row in rows.itertuples():
        prompt = confidence_prompt(template, row.question, row.answer)
        with torch.inference_mode():
            logits = adapted(torch.tensor([tokenizer(prompt)["input_ids"]])).logits[0, -1]
        expected = confidence_of(logits[digit_tokens(tokenizer)][None]).item()
        assert row.confidence == pytest.approx(expected, abs=1e-5)


def test_the_table_has_a_number_for_each_method(folder):
    cells = pd.read_csv(folder / "results/one_gpu/tables/oracle_vs_methods.csv")
    assert set(cells["model"]) == set(REPOS)
    assert {"end_correct", "self_consistency", "non_oracle", "oracle"} <= set(
        cells["estimator"]
    )
    assert np.isfinite(cells["value"]).all()
    tex = (folder / "results/one_gpu/tables/oracle_vs_methods.tex").read_text()
    assert "SmolLM3 3B" in tex and "Pythia 1.4B" in tex
