"""Options scored in trees, against single forward passes and lm-evaluation-harness.

The harness's scores are in `lm_eval_options.json`, which `tests/helpers/harness.py FOLDER FILE`
writes if lm-eval 0.4.13 is installed.
"""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from adapter_files import write_checkpoints
from answer_tables import questions_table
from harness import CONTEXTS, OPTIONS, harness_checkpoint, harness_scores
from jobs import beams_job, merge_job
from merge_beams import merge_beams
from records import content_of
from tiny_models import tiny_tokenizer

from persistcal.answers.decode import Beam, Search, encode_choice, score_options
from persistcal.models.batches import Work
from persistcal.store import artifacts

torch.set_num_threads(1)

RECORDED = Path(__file__).with_name("lm_eval_options.json")


def score(part=slice(None), kind="llama", batch_size="auto", **settings):
    """Return the scored options of the harness's questions."""
    model, tokenizer = harness_checkpoint(kind)
    search = Search(batch_size=batch_size)
    return score_options(model, tokenizer, CONTEXTS[part], OPTIONS[part], search, **settings)


def test_fields_of_answers_are_columns_of_the_table():
    """Scripts fill columns by name, so another name would leave a column empty."""
    names = set(artifacts.BEAMS.schema.names) - {"question_id", "beam", "stated"}
    assert set(Beam._fields) == names


def score_one_by_one(kind, chat=False):
    """Score each option by a full forward pass of its prompt."""
    model, tokenizer = harness_checkpoint(kind)
    for context, options in zip(CONTEXTS, OPTIONS, strict=True):
        prompt, tokens = encode_choice(tokenizer, context, options, chat=chat)
        for option in tokens:
            with torch.inference_mode():
                ids = torch.tensor([prompt + option], device=model.device)
                logits = model(ids).logits[0, len(prompt) - 1 : -1].double()
            logprob = logits.log_softmax(-1).cpu()
            entropy = torch.distributions.Categorical(logits=logits).entropy().mean().item()
            certainty = -(logprob + np.log(logprob.shape[1])).mean().item()
            first, second = logprob.exp().sort(descending=True).values[:, :2].mean(0).tolist()
            picked = logprob[range(len(option)), option]
            means = entropy, certainty, first - second
            yield picked.sum().item(), len(option), *means, picked.min().item()


@pytest.mark.parametrize(("kind", "batch_size"), [("llama", 1), ("olmo3", "auto")])
def test_options_in_trees_score_as_one_by_one(kind, batch_size):
    """Olmo3's window of 12 tokens is shorter than the prompts."""
    options = [option for q in score(kind=kind, batch_size=batch_size) for option in q]
    assert [option.text for option in options] == [text for q in OPTIONS for text in q]
    numbers = [option[1:-1] for option in options]
    np.testing.assert_allclose(numbers, list(score_one_by_one(kind)), atol=1e-4)


def test_options_score_as_in_lm_evaluation_harness():
    recorded = json.loads(RECORDED.read_text())
    for chat in (False, True):
        scores = [[o.logprob, o.unconditional] for q in score(chat=chat) for o in q]
        np.testing.assert_allclose(scores, recorded["chat" if chat else "text"], atol=1e-4)


def test_the_installed_harness_gives_the_recorded_scores(tmp_path):
    if not importlib.util.find_spec("lm_eval"):
        pytest.skip(
            "lm-evaluation-harness is not installed: pip install --no-deps -r envs/peers.txt"
        )
    recorded = json.loads(RECORDED.read_text())
    for name, rows in harness_scores(tmp_path).items():
        np.testing.assert_allclose(rows, recorded[name], atol=1e-5)


def test_shards_give_the_same_scores():
    whole = score(batch_size=2)
    shards = [score(batch_size=2, work=Work(shard, 2)) for shard in range(2)]
    assert [a or b for a, b in zip(*shards, strict=True)] == whole
    assert all(bool(a) != bool(b) for a, b in zip(*shards, strict=True))


def test_a_space_between_context_and_option_belongs_to_the_option():
    _, tokenizer = harness_checkpoint("llama")
    text_prompt = encode_choice(tokenizer, "Answer:", ["a", "ab"], chat=False)
    chat_prompt = encode_choice(tokenizer, "Answer: \n", ["a"], chat=True)
    assert tokenizer.decode(text_prompt.context + text_prompt.options[1]) == "Answer: ab"
    assert tokenizer.decode(chat_prompt.options[0]) == " \na"


def test_an_option_without_tokens_is_refused():
    tokenizer = tiny_tokenizer()
    message = "option '' of the question that ends in 'Answer:' adds"
    with pytest.raises(ValueError, match=message):
        encode_choice(tokenizer, "Answer:", ["a", ""], chat=True)


def test_a_job_writes_a_beam_per_option_and_merged_shards_are_the_same_file(tmp_path):
    write_checkpoints(tmp_path, ["a"], n_train=3, n_test=4)
    questions = questions_table(n_train=3, n_test=4)
    options = pd.Series([["Norway", "Sweden", "Peru"]] * 7)
    questions = questions.assign(options=options, gold=[0, 1, 2, 0, 1, 2, 0])
    path = tmp_path / "questions.parquet"
    artifacts.write(questions, path, artifacts.QUESTIONS, values={"dataset": "atlas"})
    whole, merged = tmp_path / "whole.parquet", tmp_path / "merged.parquet"
    beams_job(tmp_path, whole, n_examples=0)
    shards = [tmp_path / f"shard{n}.parquet" for n in range(2)]
    for shard, output in enumerate(shards):
        beams_job(tmp_path, output, shard=shard, n_shards=2)
    merge_job(merge_beams, tmp_path, shards, merged)

    assert content_of(merged) == content_of(whole)
    beams = artifacts.read(whole, artifacts.BEAMS)
    assert beams["text"].tolist() == ["Norway", "Sweden", "Peru"] * 3
    assert beams["beam"].tolist() == [0, 1, 2] * 3
    assert beams[["logprob", "entropy", "unconditional"]].notna().all(axis=None)
    with pytest.raises(ValueError, match="scored with decoding"):
        beams_job(tmp_path, whole, backend="vllm")
