"""vLLM itself against transformers, on tiny random models.

Run by ``make test-vllm`` in a separate environment. Attention heads have 32 dimensions,
because vLLM's attention on CPUs needs at least 32.
"""

import gc
import json
import os

import numpy as np
import pytest
import torch
from tiny_models import save_tiny, tiny_model, tiny_tokenizer
from workflow_runs import snakemake

from persistcal.answers.decode import Search, generate_beams
from persistcal.models.load import load_model
from persistcal.models.prompts import few_shot_prefix, question_suffix
from persistcal.models.vllm import VllmModel
from persistcal.store import artifacts

pytestmark = pytest.mark.skipif(
    not os.environ.get("RUN_VLLM"),
    reason="needs vLLM in an environment of its own: make test-vllm",
)
torch.set_num_threads(1)

PREFIX = few_shot_prefix([(f"Which country is city {i} in?", "Norway") for i in range(5)])
SUFFIXES = [
    question_suffix(question)
    for question in (
        "Which country is Oslo in?",
        "Who?",
        "Which of the countries in which Oslo is or is not is the one that is meant here?",
        "日本?",
    )
]
WIDTH = 128  # four heads of 32
SPLITS = {"Lyon": "few_shot", "Osaka": "train", "Turin": "test", "Leeds": "test", "Ö": "test"}
QUIZ = "".join(
    json.dumps({"question": f"Which country is {name} in?", "answers": "x", "split": split})
    + "\n"
    for name, split in SPLITS.items()
)
STUDY = """
results: out
models:
  mine:
    label: Mine
    repo: mine
    checkpoints: {start: {revision: step0}, middle: {revision: step1}, end: {revision: step2}}
    earlier: [start]
    evaluation: [middle, end]
datasets: {quiz: {label: Quiz, source: file, file: quiz.jsonl, min_contrast: 1}}
study: {models: [mine], datasets: [quiz], estimators: [end_correct], tables: [all_estimators]}
decoding: {n_beams: 3, max_new_tokens: 6}
prompts: {few_shot: 1}
"""


@pytest.mark.parametrize("kind", ["olmo3", "llama"])
def test_both_backends_find_the_same_beams_and_samples_end(kind, tmp_path):
    """Prompts are longer than Olmo-3's window and share the 128 tokens that vLLM caches."""
    tokenizer = tiny_tokenizer()
    assert len(tokenizer(PREFIX)["input_ids"]) > 128

    tiny_model(kind, hidden=WIDTH, layers=4).save_pretrained(tmp_path)
    sizes = {"n_beams": 10, "max_new_tokens": 12}
    expected = generate_beams(
        load_model(str(tmp_path)), tokenizer, PREFIX, SUFFIXES, Search(**sizes)
    )
    model = VllmModel(str(tmp_path))
    for batch_size in (4, 3):
        search = Search(**sizes, batch_size=batch_size)
        beams = generate_beams(model, tokenizer, PREFIX, SUFFIXES, search)
        for vllm_beams, expected_beams in zip(beams, expected, strict=True):
            assert [beam.text for beam in vllm_beams] == [beam.text for beam in expected_beams]
            logprobs = [
                [beam.logprob for beam in answer] for answer in (vllm_beams, expected_beams)
            ]
            np.testing.assert_allclose(*logprobs, atol=1e-3)
    assert len({beam.text for beams in expected for beam in beams}) > 20

    samples = model.draw(
        [tokenizer(PREFIX + suffix)["input_ids"] for suffix in SUFFIXES],
        [1, 2, 3, 4],
        ends := [*range(0, 300, 7)],
        **{"n": 5, "max_tokens": 12, "temperature": 0.8, "top_p": 0.95},
    )
    assert [len(drawn) for drawn in samples] == [5] * 4
    for tokens, drawn_logprobs, _ in (sample for drawn in samples for sample in drawn):
        assert len(tokens) == len(drawn_logprobs)
        assert tokens[-1] in ends or len(tokens) == 12
        assert not set(tokens[:-1]) & set(ends)
    assert len({tuple(tokens) for drawn in samples for tokens, *_ in drawn}) == 20

    del model
    gc.collect()  # ends the engine's processes


def test_the_rule_decodes_with_vllm(tmp_path):
    """Snakemake runs the rule's script, which starts the engine's processes."""
    for seed in range(3):
        folder = tmp_path / "mine" / f"step{seed}"
        save_tiny(folder, seed=seed, hidden=WIDTH)
    (tmp_path / "quiz.jsonl").write_text(QUIZ)
    (tmp_path / "mine.yaml").write_text(STUDY)
    target = "out/beams/mine/start/quiz/test.parquet"
    beams = {}
    for backend in ("vllm", "transformers"):
        (tmp_path / "backend.yaml").write_text(f"decoding: {{backend: {backend}}}")
        configs = [tmp_path / "mine.yaml", tmp_path / "backend.yaml"]
        snakemake(tmp_path, "-c1", target, configs=configs)
        beams[backend] = artifacts.read(tmp_path / target, artifacts.BEAMS)
    with_vllm, with_transformers = (beams[backend].drop(columns="logprob") for backend in beams)

    assert len(with_vllm) == 12
    assert with_vllm.equals(with_transformers)
    logprobs = [frame["logprob"] for frame in beams.values()]
    np.testing.assert_allclose(*logprobs, atol=1e-3)
    assert not logprobs[0].equals(logprobs[1])  # the changed config ran the job again
