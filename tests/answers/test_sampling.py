"""Samples: reproducible, with the model's own probabilities."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch
from adapter_files import write_checkpoints
from jobs import beams_job
from merge_shards import merge_shards
from scipy.stats import chisquare, kstest
from tiny_models import tiny_model, tiny_tokenizer
from transformers import TopPLogitsWarper

from persistcal import artifacts
from persistcal.answers import decode
from persistcal.answers.decode import Draw, generate_beams
from persistcal.answers.sampling import Sampling, entropies, gumbel, nucleus, question_key
from persistcal.models.batches import Work
from persistcal.models.vllm import VllmModel

torch.set_num_threads(1)

PREFIX = "Prompt: Which country is Oslo in?\nAnswer: Norway\n\n"
SUFFIXES = [f"Prompt: Which {word}?\nAnswer:" for word in ("Oslo", "country is in", "a", "Nor")]
PLAIN = Draw(temperature=1.0, top_p=1.0, seed=17)


def sampled(draw=PLAIN, batch_size=3, n=5, max_new_tokens=6, suffixes=SUFFIXES, **settings):
    return generate_beams(
        tiny_model(),
        tiny_tokenizer(),
        PREFIX,
        suffixes,
        n_beams=n,
        max_new_tokens=max_new_tokens,
        batch_size=batch_size,
        draw=draw,
        **settings,
    )


def texts(answers):
    return [[sample.text for sample in samples] for samples in answers]


@pytest.mark.parametrize("draw", [PLAIN, Draw(0.7, 0.8, 3)])
def test_samples_do_not_depend_on_batches_shards_or_their_number(draw):
    expected = sampled(draw, batch_size=1)
    assert len(set(np.ravel(texts(expected)))) > 10
    for batch_size in (3, 8):
        found = sampled(draw, batch_size=batch_size)
        assert texts(found) == texts(expected)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(
                [s[1:] for s in ours], [s[1:] for s in theirs], atol=1e-4
            )
    shards = [sampled(draw, batch_size=1, work=Work(shard, 3)) for shard in range(3)]
    together = [next(filter(None, parts)) for parts in zip(*shards, strict=True)]
    assert texts(together) == texts(expected)
    assert texts(sampled(draw, suffixes=SUFFIXES[::-1])) == texts(expected)[::-1]
    assert texts(sampled(draw, n=3)) == [samples[:3] for samples in texts(expected)]
    assert texts(sampled(draw._replace(seed=18))) != texts(expected)


@pytest.mark.parametrize("draw", [None, PLAIN, Draw(0.5, 0.7, 1)])
def test_log_probabilities_lengths_and_entropies_are_of_the_model_itself(draw, monkeypatch):
    """Of beams and of samples, against a full forward pass of each."""
    searches, texts_of = [], decode._beams
    monkeypatch.setattr(decode, "_beams", lambda *a: searches.append(a[0]) or texts_of(*a))
    model, tokenizer = tiny_model(), tiny_tokenizer()
    prompt = tokenizer(PREFIX + SUFFIXES[1])["input_ids"]
    [answers] = sampled(draw, suffixes=SUFFIXES[1:2])
    for tokens, answer in zip(searches[0].finished_tokens[0].tolist(), answers, strict=True):
        ids = [token for token in tokens if token >= 0]
        logits = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
        logprob = logits.log_softmax(-1)
        own = logprob.gather(1, torch.tensor(ids)[:, None]).sum().item()
        entropy = -(logprob.exp() * logprob).sum(-1).mean().item()
        assert answer[1:] == (pytest.approx(own, abs=1e-4), len(ids), pytest.approx(entropy))


def test_shards_of_the_script_make_the_same_file(tmp_path):
    write_checkpoints(tmp_path, ["a"])
    settings = {"draw": PLAIN._asdict(), "max_new_tokens": 3}
    beams_job(tmp_path, tmp_path / "whole", **settings)
    shards = [tmp_path / f"shard{i}" for i in range(3)]
    for i, path in enumerate(shards):
        beams_job(tmp_path, path, shard=i, n_shards=3, **settings)
    questions, merged = str(tmp_path / "questions.parquet"), tmp_path / "merged"
    merge_shards([str(path) for path in shards], questions, str(merged), table="BEAMS")
    assert merged.read_bytes() == (tmp_path / "whole").read_bytes()
    assert len(artifacts.read(merged, artifacts.BEAMS)) == 24 * 3


# A Markov chain over a, b and the end: logits of the next token after each.
A, B, END = 0, 1, 2
NEXT = {None: [0.5, 0.3, 0.2], A: [0.2, 0.3, 0.5], B: [0.6, 0.1, 0.3]}
ENDS = torch.tensor([False, False, True])


def chain(n_samples, *, temperature=1.0, top_p=1.0, seed=17, text="q"):
    """Samples of at most three tokens, with their scores and entropies."""
    search = Sampling(
        [text],
        n_samples=n_samples,
        max_new_tokens=3,
        temperature=temperature,
        top_p=top_p,
        seed=seed,
        ends=ENDS,
    )
    while len(search.question):
        last = search.tokens[:, -1].tolist() if search.tokens.shape[1] else [None]
        search.advance(torch.tensor([NEXT[token] for token in last]).log())
    return [
        (tuple(token for token in tokens if token >= 0), score, entropy)
        for tokens, score, entropy in zip(
            search.finished_tokens[0].tolist(),
            search.finished_score[0].tolist(),
            search.finished_entropy[0].tolist(),
            strict=True,
        )
    ]


def sequences(temperature=1.0, keep=lambda p: p):
    """Every sequence of the chain with its probability."""
    found = {}
    for tokens in product((A, B, END), repeat=3):
        probability, last, done = 1.0, None, []
        for token in tokens:
            p = keep(np.array(NEXT[last]) ** (1 / temperature))
            probability *= p[token] / p.sum()
            done.append(token)
            last = token
            if token == END:
                break
        found[tuple(done)] = probability
    return found


def cut(p):
    """The nucleus of 0.6 of the chain: two tokens everywhere but after b, where it is one."""
    ranked = np.sort(p / p.sum())[::-1]
    least = ranked[np.searchsorted(ranked.cumsum(), 0.6 - 1e-9)]
    return np.where(p / p.sum() >= least, p, 0)


@pytest.mark.parametrize(
    ("settings", "exact"),
    [
        ({}, sequences()),
        ({"temperature": 0.5}, sequences(0.5)),
        ({"top_p": 0.6}, sequences(keep=cut)),
    ],
)
def test_samples_are_as_frequent_as_they_are_probable(settings, exact):
    n = 4000
    counts = Counter(tokens for tokens, _, _ in chain(n, **settings))
    possible = {tokens: p for tokens, p in exact.items() if p > 0}
    assert sum(possible.values()) == pytest.approx(1)
    assert set(counts) <= set(possible)
    observed = [counts[tokens] for tokens in possible]
    assert chisquare(observed, n * np.array(list(possible.values()))).pvalue > 0.01


def test_scores_and_entropies_of_a_chain_at_any_temperature():
    entropy = {last: -sum(x * np.log(x) for x in p) for last, p in NEXT.items()}
    for settings in ({}, {"temperature": 0.3}, {"top_p": 0.6}):
        for tokens, score, summed in chain(20, **settings):
            before = [None, *tokens[:-1]]
            own = sum(np.log(NEXT[b][t]) for b, t in zip(before, tokens, strict=True))
            assert score == pytest.approx(own, abs=1e-5)
            assert summed == pytest.approx(sum(entropy[b] for b in before), abs=1e-5)


def test_a_low_temperature_and_a_small_nucleus_are_greedy():
    # a is likeliest first, then the end
    assert {tokens for tokens, _, _ in chain(50, temperature=1e-4)} == {(A, END)}
    assert {tokens for tokens, _, _ in chain(50, top_p=1e-6)} == {(A, END)}


def test_the_nucleus_is_that_of_transformers():
    logits = torch.randn(40, 30, generator=torch.Generator().manual_seed(0)) * 3
    for top_p in (0.05, 0.5, 0.9, 0.999):
        theirs = TopPLogitsWarper(top_p)(None, logits)
        ours = nucleus(logits.log_softmax(-1), top_p)
        assert torch.equal(ours > -torch.inf, theirs > -torch.inf)


def test_noise_is_gumbel_and_independent_between_addresses():
    key = question_key(17, "Who?")
    drawn = {
        (k, sample, step): gumbel(k, sample, step, 2000)
        for k in (key, question_key(17, "Where?"), question_key(18, "Who?"))
        for sample in (0, 1)
        for step in (0, 1)
    }
    values = np.array(list(drawn.values()))
    assert kstest(values.ravel(), "gumbel_r").pvalue > 0.01
    # 12 rows of 2,000 numbers: correlations have a standard deviation of 0.022
    assert np.abs(np.corrcoef(values) - np.eye(12)).max() < 0.1
    # a longer vocabulary goes on where a shorter one ends
    assert np.array_equal(gumbel(key, 1, 1, 3000)[:2000], drawn[key, 1, 1])


def test_entropy_counts_impossible_tokens_as_nothing():
    assert entropies(torch.tensor([[0.0, -torch.inf]])).item() == 0


def test_weights_that_overflow_are_refused():
    search = Sampling(
        ["q"], n_samples=2, max_new_tokens=3, temperature=1.0, top_p=1.0, seed=0, ends=ENDS
    )
    with pytest.raises(FloatingPointError, match="not finite, so nothing can be drawn"):
        search.advance(torch.tensor([[torch.nan, 0.0, 0.0]]))


def test_vllm_draws_no_samples():
    with pytest.raises(ValueError, match="backend transformers, not vllm"):
        generate_beams(VllmModel.__new__(VllmModel), None, "", ["a"], draw=PLAIN)
