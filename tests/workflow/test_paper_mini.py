"""The paper's study in miniature, through every rule of the real one and offline.

Models, questions, verifier and entailment model are small local models with the files of the
real repositories (`mini_hub`); the judge answers over HTTP.
"""

import hashlib
import itertools
import json
import re
import threading
from collections import Counter

import mini_hub
import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from judge_server import KEY, LISTED, FakeJudge, completion
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
from workflow_runs import ROOT, snakemake

from persistcal.store import artifacts

MINI = ROOT / "tests" / "config" / "paper_mini.yaml"
EVALUATION = ["step566000", "step1413814"]
# Other tables show both datasets with a train split.
DATASETS_OF = {"domain_transfer": {"bioasq"}, "gcm": {"triviaqa"}}
DATASETS_OF |= {"methods_vs_ablations": {"triviaqa"}}
QUESTION = re.compile(r"^Question: (.*)$", re.MULTILINE)


def label_of(question, answer):
    """Label half of all answers correct and an eighth not attempted, by their texts."""
    digit = hashlib.sha256(f"{question}\n{answer}".encode()).digest()[0] % 8
    return "correct" if digit < 4 else "incorrect" if digit < 7 else "not_attempted"


class HashingJudge(FakeJudge):
    """Labels by `label_of` and counts requests by their text."""

    def __init__(self):
        super().__init__()
        self.requests, self.counting = Counter(), threading.Lock()

    def grade(self, body):
        user = body["messages"][-1]["content"]
        with self.counting:
            self.requests[user] += 1
        labels = [label_of(QUESTION.search(user)[1], answer) for answer in LISTED.findall(user)]
        return completion("\n".join(label.replace("_", " ").upper() for label in labels))


class PaperRun:
    """A folder with the complete miniature study, and the judge."""

    targets = ("results/tables/oracle_vs_methods.tex", "all")

    def __init__(self, folder, judge):
        self.folder, self.judge = folder, judge
        self.results = folder / "results"
        self.overlay = folder / "judge.yaml"
        address = {"judge": {"base_url": judge.server.url_for("/v1")}}
        self.overlay.write_text(yaml.safe_dump(address))

    def run(self, *arguments):
        # Models of the config's size need a GPU each; gpu=2 lets jobs use both cores. Ranks
        # import all packages again.
        recipes = ("oracle", "non_oracle", "transfer_random")
        options = ["--cores", "2", "--resources", "gpu=2", "--set-resources"]
        options += [f"train_{recipe}:ranks=1" for recipe in recipes]
        configs = [MINI, self.overlay]
        return snakemake(self.folder, *arguments, *options, configs=configs, timeout=1800)

    def table(self, path, table):
        return artifacts.read(self.results / path, table)

    def predictions(self, dataset):
        paths = sorted((self.results / "predictions/olmo3-7b" / dataset).glob("*.parquet"))
        return pd.concat(artifacts.read(path, artifacts.PREDICTIONS) for path in paths)

    def questions(self, dataset):
        return self.table(f"questions/{dataset}.parquet", artifacts.QUESTIONS)

    def cells(self, name):
        return pd.read_csv(self.results / "tables" / f"{name}.csv")

    def judged(self):
        """Return every labelled answer with question, label, source and references."""
        parts = []
        for path in sorted((self.results / "labels").glob("*/*/*/*.parquet")):
            place = path.relative_to(self.results / "labels")
            clusters = self.table("clusters" / place, artifacts.CLUSTERS)
            assert len(clusters) == len(clusters[["question_id", "answer"]].drop_duplicates())
            labels = artifacts.read(path, artifacts.LABELS)
            assert len(labels) == len(clusters) > 0
            rows = labels.merge(clusters, on=["question_id", "cluster"], validate="one_to_one")
            rows = rows.merge(self.questions(path.parent.name), on="question_id")
            parts.append(rows.assign(place=str(place)))
        # 4 checkpoints on two splits of two datasets and on BioASQ's test questions, and
        # Qwen's own answers for the headroom
        assert len(parts) == 4 * (2 * 2 + 1) + 1
        return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    mini_hub.write_hub(folder)
    with HashingJudge() as judge, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        paper = PaperRun(folder, judge)
        paper.output = paper.run(*paper.targets, "--verbose")
        yield paper


def test_snakemake_looks_for_jobs_only_when_a_job_has_ended(paper):
    """Snakemake's default limit of jobs per second looks 33 times per job."""
    n_jobs = paper.output.count("Finished jobid: ")
    assert 100 < n_jobs
    assert paper.output.count("Ready jobs: ") < 2 * n_jobs


def test_nothing_is_left_to_do_and_no_question_is_judged_twice(paper):
    distinct = {
        (question, *(" ".join(answer.split()) for answer in rows["answer"]))
        for (_, question), rows in paper.judged().groupby(["place", "question"])
    }
    assert set(paper.judge.requests.values()) == {1}
    # 4 checkpoints on three datasets, train and test, and Qwen's on TriviaQA's test split
    assert len(paper.judge.requests) == len(distinct) == 4 * (15 + 25 + 16 + 24 + 24) + 25
    assert "Nothing to be done" in paper.run(*paper.targets, "--dry-run")
    # the default target keeps the analyses on the page
    assert "Nothing to be done" in paper.run("--dry-run")
    # A deleted table is made again from the judge's saved replies.
    path = paper.results / "labels/olmo3-7b/step566000/triviaqa/test.parquet"
    content = path.read_bytes()
    path.unlink()
    paper.run(path.relative_to(paper.folder))
    assert path.read_bytes() == content
    assert len(paper.judge.requests) == len(distinct)
    assert set(paper.judge.requests.values()) == {1}


def test_labels_are_the_judges_replies(paper):
    judged = paper.judged()
    # the verifier's base model answers the test questions only
    assert set(judged.loc[judged["place"].str.startswith("qwen"), "split"]) == {"test"}
    assert set(judged["split"]) == {"train", "test"}
    assert set(judged["source"]) == {"gpt-5.4"}
    expected = [
        label_of(question, " ".join(answer.split()))
        for question, answer in zip(judged["question"], judged["answer"], strict=True)
    ]
    assert judged["label"].tolist() == expected
    assert set(expected) == {"correct", "incorrect", "not_attempted"}


def test_questions_are_split_as_in_the_paper(paper):
    for dataset, n_train, n_test, n_examples in (
        ("triviaqa", 15, 25, 10),  # the blacklisted one falls into the train split
        ("jeopardy", 16, 24, 10),
        ("bioasq", 0, 24, 5 + 5),
    ):
        questions = paper.questions(dataset)
        kept = questions[~questions["excluded"]]
        sizes = kept["split"].value_counts()
        assert sizes.get("train", 0) == n_train
        assert (sizes["test"], sizes["few_shot"]) == (n_test, n_examples)
        assert questions["question"].is_unique


def test_adapters_learn_from_the_train_split_only(paper):
    folders = sorted((paper.results / "adapters").glob("*/*/*/*/seed*"))
    assert all((folder / "adapter_model.safetensors").exists() for folder in folders)
    counts = Counter(folder.parts[-3] for folder in folders)
    assert counts == {
        # two seeds and the two datasets with a train split
        "non_oracle": 4,
        "oracle": 4,
        # A table shows these for TriviaQA only; each of two evaluation checkpoints has its own.
        "non_oracle_single": 2,
        "oracle_respective": 4,
        # 4 checkpoints and 3 neighbouring pairs on TriviaQA, one seed; then two seeds
        "transfer": 4,
        "transfer_random": 3,
        "hidden_states": 8,
    }
    for folder in folders:
        steps = artifacts.read(folder / "training.parquet", artifacts.TRAINING)
        # 15 and 16 questions in batches of 8; 17 questions would need 3 steps
        assert len(steps) == 2


# Rows at each of two evaluation checkpoints, for each question of the test split:
# an estimator without training has one, an adapter one per seed (2) and, where the
# dataset has no train split, per dataset that it was trained on (2).
BASELINES = {"end_correct", "self_consistency"}
ADAPTERS = {"non_oracle", "oracle"}
ON_TRIVIAQA = {"self_consistency_surrogate", "self_consistency_copy", "gcm", "gcm_posthoc"}
ADAPTERS_ON_TRIVIAQA = {"non_oracle_surrogate", "non_oracle_copy"}
ADAPTERS_ON_TRIVIAQA |= {"non_oracle_single", "oracle_respective"}


@pytest.mark.parametrize(
    ("dataset", "n", "trained_on"),
    [
        ("triviaqa", 25, ["triviaqa"]),
        ("jeopardy", 24, ["jeopardy"]),
        ("bioasq", 24, ["triviaqa", "jeopardy"]),
    ],
)
def test_every_estimator_has_its_predictions(paper, dataset, n, trained_on):
    frame = paper.predictions(dataset)
    assert set(frame["checkpoint"]) == set(EVALUATION)
    assert frame.groupby(["train_dataset", "estimator", "seed"]).size().eq(2 * n).all()
    learnt = frame[frame["estimator"].isin(ADAPTERS | ADAPTERS_ON_TRIVIAQA)]
    assert set(learnt["train_dataset"]) == set(trained_on)
    assert set(learnt["seed"]) == {17, 18}
    n_rows, n_rows_of_adapters = 2 * n, 2 * n * 2 * len(trained_on)
    expected = dict.fromkeys(BASELINES, n_rows)
    expected |= dict.fromkeys(ADAPTERS, n_rows_of_adapters)
    if dataset in trained_on:
        expected["self_consistency_posthoc"] = n_rows
    if dataset == "triviaqa":
        expected |= dict.fromkeys(ON_TRIVIAQA, n_rows)
        expected |= dict.fromkeys(ADAPTERS_ON_TRIVIAQA, n_rows_of_adapters)
    assert frame.groupby("estimator").size().to_dict() == expected


def test_confidences_depend_on_the_seed_the_recipe_and_the_weights(paper):
    runs = paper.predictions("triviaqa").pivot(
        index=["checkpoint", "question_id"], columns=["estimator", "seed"], values="confidence"
    )
    for first, second in itertools.combinations(runs.columns, 2):
        is_equal = np.allclose(runs[first], runs[second], rtol=0, atol=1e-9)
        assert not is_equal, (first, second)


@pytest.mark.parametrize(
    ("table", "estimators"),
    [
        ("oracle_vs_methods", {*BASELINES, *ADAPTERS, "self_consistency_posthoc"}),
        (
            "methods_vs_ablations",
            {"self_consistency", "self_consistency_surrogate", "self_consistency_copy"}
            | {"non_oracle", "non_oracle_surrogate", "non_oracle_copy"},
        ),
        ("gcm", {"gcm", "gcm_posthoc", "oracle"}),
        ("domain_transfer", {"self_consistency", "non_oracle", "oracle"}),
    ],
)
def test_tables_hold_a_number_for_each_method(paper, table, estimators):
    cells = paper.cells(table)
    assert set(cells["estimator"]) == estimators
    assert set(cells["model"]) == {"olmo3-7b"}
    assert set(cells["dataset"]) == DATASETS_OF.get(table, {"triviaqa", "jeopardy"})
    assert np.isfinite(cells["value"]).all()
    assert (paper.results / "tables" / f"{table}.tex").read_text().count("\\") > len(estimators)


def test_the_verifier_is_asked_in_its_chat_format(paper):
    verdicts = paper.table("verified/gcm/olmo3-7b/triviaqa.parquet", artifacts.VERIFIED)
    # The train answers fit gcm_posthoc; both estimators rate the test answers.
    counts = verdicts.groupby("checkpoint").size().to_dict()
    assert [counts.pop(name) for name in EVALUATION] == [25, 25]
    assert counts == {"step283000": 15, "step424000": 15}
    hub = paper.folder / "hub"
    tokenizer = AutoTokenizer.from_pretrained(hub / mini_hub.QWEN / "main")
    base = AutoModelForCausalLM.from_pretrained(
        hub / mini_hub.QWEN / "main", dtype=torch.float32
    )
    model = PeftModel.from_pretrained(base, hub / mini_hub.GCM / "main").eval()
    [yes] = tokenizer.encode("yes")

    def probability(text):
        with torch.inference_mode():
            logits = model(torch.tensor([tokenizer.encode(text)])).logits[0, -1]
        return logits.double().softmax(-1)[yes].item()

    prompt = (ROOT / "config/prompts/gcm.txt").read_text()
    clusters = paper.table(
        "clusters/olmo3-7b/step566000/triviaqa/test.parquet", artifacts.CLUSTERS
    )
    asked = verdicts[verdicts["checkpoint"] == "step566000"].head(6)
    asked = asked.merge(clusters[clusters["cluster"] == 0], on="question_id")
    for row in asked.merge(paper.questions("triviaqa"), on="question_id").itertuples():
        text = prompt.replace("{question}", row.question).replace("{answer}", row.answer)
        chat = (
            f"<|im_start|>user\n{text}<|im_end|>\n"
            "<|im_start|>assistant\n<think>\n\n</think>\n\n"
        )
        assert row.confidence == pytest.approx(probability(chat), rel=1e-3)
        assert row.confidence != pytest.approx(probability(text), rel=1e-2)


def test_analyses_have_figures_tables_and_an_audit_sheet(paper):
    for name in ("accuracy", "full_vs_contrast", "transfer_triviaqa", "gcm_headroom"):
        assert (paper.results / "figures" / f"{name}.png").stat().st_size > 10_000
    headroom = artifacts.read_csv(
        paper.results / "headroom/olmo3-7b/triviaqa.csv", artifacts.HEADROOM
    )
    assert np.isfinite(headroom[["headroom", "error_rate"]]).all(axis=None)
    # questions in the contrast set of the only pair, of 25 questions
    assert 3 <= headroom["n"].item() < 25
    assert paper.cells("hidden_state_variance")["layer"].tolist() == [1, 2, 3, 4]
    similarity = paper.cells("weight_similarity")
    assert len(similarity) == 6  # pairs among 4 checkpoints
    assert similarity["cosine"].between(-1, 0.9).all()
    assert len(pd.read_csv(paper.results / "audit/olmo3-7b/triviaqa.csv")) == 5 + 2 + 2


def test_local_repositories_need_no_hub(paper):
    records = sorted((paper.results / "checkpoints").glob("*/*.json"))
    assert len(records) == 4 + 1
    for path in records:
        record = json.loads(path.read_text())
        assert record["commit"] is None and record["repo"].startswith("hub/")
        assert len(record["weights"]) > 1  # shards
