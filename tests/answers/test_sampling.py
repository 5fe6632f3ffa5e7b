"""Samples: reproducible, with the model's own probabilities."""

import math
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest
from tiny_models import tiny_model, tiny_tokenizer
from transformers import TopPLogitsWarper

from persistcal.answers import decode
from persistcal.answers.continuations import (
    BLOCK,
    Sampling,
    entropies,
    gumbel,
    measure_distributions,
    nucleus,
    philox,
    question_key,
)
from persistcal.answers.decode import Draw, Search, generate_beams
from persistcal.models.batches import Work
from persistcal.models.vllm import VllmModel

torch.set_num_threads(1)

PREFIX = "Prompt: Which country is Oslo in?\nAnswer: Norway\n\n"
SUFFIXES = [f"Prompt: Which {word}?\nAnswer:" for word in ("Oslo", "country is in", "a", "Nor")]
DRAW = Draw(temperature=0.7, top_p=0.8, seed=3)


def sampled(draw=DRAW, batch_size=3, n=5, max_new_tokens=6, suffixes=SUFFIXES, **settings):
    return generate_beams(
        tiny_model(),
        tiny_tokenizer(),
        PREFIX,
        suffixes,
        Search(n, max_new_tokens, draw, batch_size),
        **settings,
    )


def texts(answers):
    return [[sample.text for sample in samples] for samples in answers]


def test_samples_do_not_depend_on_batches_shards_or_their_number():
    expected = sampled(batch_size=1)
    assert len(set(np.ravel(texts(expected)))) > 10
    for batch_size in (3, 8):
        found = sampled(batch_size=batch_size)
        assert texts(found) == texts(expected)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(
                [s[1:] for s in ours], [s[1:] for s in theirs], atol=1e-4
            )
    shards = [sampled(batch_size=1, work=Work(shard, 3)) for shard in range(3)]
    together = [next(filter(None, parts)) for parts in zip(*shards, strict=True)]
    assert texts(together) == texts(expected)
    assert texts(sampled(suffixes=SUFFIXES[::-1])) == texts(expected)[::-1]
    assert texts(sampled(n=3)) == [samples[:3] for samples in texts(expected)]
    assert texts(sampled(replace(DRAW, seed=18))) != texts(expected)


@pytest.mark.parametrize("draw", [None, Draw(0.5, 0.7, 1)])
def test_log_probabilities_lengths_and_entropies_are_of_the_model_itself(draw, monkeypatch):
    """Of beams and of samples, against a full forward pass of each."""
    found, texts_of = [], decode.beams_of

    def remembering(finished, *rest, **how):
        found.append(finished)
        return texts_of(finished, *rest, **how)

    monkeypatch.setattr(decode, "beams_of", remembering)
    model, tokenizer = tiny_model(), tiny_tokenizer()
    prompt = tokenizer(PREFIX + SUFFIXES[1])["input_ids"]
    [answers] = sampled(draw, suffixes=SUFFIXES[1:2])
    for tokens, answer in zip(found[0].tokens[0].tolist(), answers, strict=True):
        ids = [token for token in tokens if token >= 0]
        logits = model(torch.tensor([prompt + ids], device=model.device)).logits
        logprob = logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        own = logprob[range(len(ids)), ids]
        means = [np.mean(values) for values in zip(*map(measures, logprob), strict=True)]
        assert answer.n_tokens == len(ids)
        expected = [own.sum().item(), *means, own.min().item()]
        assert [answer[1], *answer[3:]] == pytest.approx(expected, abs=1e-4)


def measures(logprob):
    """Entropy, divergence of the uniform distribution, and margin of one token."""
    p = logprob.double().exp().tolist()
    entropy = -sum(x * math.log(x) for x in p)
    certainty = sum(math.log(1 / len(p) / x) for x in p) / len(p)
    first, second = sorted(p, reverse=True)[:2]
    return entropy, certainty, first - second


# A Markov chain over a, b and the end: logits of the next token after each.
A, B, END = 0, 1, 2
NEXT = {None: [0.5, 0.3, 0.2], A: [0.2, 0.3, 0.5], B: [0.6, 0.1, 0.3]}
ENDS = torch.tensor([False, False, True])


def begun(n_samples, max_new_tokens=1, ends=ENDS, temperature=1.0, top_p=1.0):
    """Samples of one question, of which there is no token yet."""
    sizes = {"n_samples": n_samples, "max_new_tokens": max_new_tokens, "ends": ends}
    return Sampling(["q"], **sizes, temperature=temperature, top_p=top_p, seed=17)


def chain(n_samples, **how):
    """Samples of at most three tokens."""
    search = begun(n_samples, max_new_tokens=3, **how)
    while len(search.question):
        last = search.token.tolist() if search.n_steps else [None]
        search.advance(torch.tensor([NEXT[token] for token in last]).log())
    found = search.finished_tokens[0].tolist()
    return [tuple(token for token in tokens if token >= 0) for tokens in found]


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
    counts = Counter(chain(n, **settings))
    possible = {tokens: p for tokens, p in exact.items() if p > 0}
    assert sum(possible.values()) == pytest.approx(1)
    assert set(counts) <= set(possible)
    observed = [counts[tokens] for tokens in possible]
    assert chisquare(observed, n * np.array(list(possible.values()))).pvalue > 0.01


def test_a_low_temperature_and_a_small_nucleus_are_greedy():
    # a is likeliest first, then the end
    assert set(chain(50, temperature=1e-4)) == {(A, END)}
    assert set(chain(50, top_p=1e-6)) == {(A, END)}


def test_the_nucleus_is_that_of_transformers():
    logits = torch.randn(40, 30, generator=torch.Generator().manual_seed(0)) * 3
    for top_p in (0.05, 0.5, 0.9, 0.999):
        theirs = TopPLogitsWarper(top_p)(None, logits)
        ours = nucleus(logits.softmax(-1), top_p)
        assert torch.equal(ours > 0, theirs > -torch.inf)


# Counter, key and output of the generator's authors, from their library Random123.
ONES = 0xFFFFFFFF
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def test_the_generator_gives_the_published_numbers():
    counters, keys, expected = zip(*KNOWN, strict=True)
    words = philox(torch.tensor(counters).unbind(1), torch.tensor(keys).unbind(1))
    assert torch.equal(torch.stack(words, dim=1), torch.tensor(expected))


def test_noise_is_gumbel_and_independent_between_addresses():
    """Between questions, seeds, samples, steps and neighbours."""
    keys = [question_key(17, "Who?"), question_key(17, "Where?"), question_key(18, "Who?")]
    keys, samples = torch.tensor(keys).repeat_interleave(2, dim=0), torch.arange(2).repeat(3)
    steps = torch.zeros_like(samples), torch.ones_like(samples)
    values = torch.cat([gumbel(keys, samples, step, 2000) for step in steps]).numpy()
    assert kstest(values.ravel(), "gumbel_r").pvalue > 0.01
    # 12 rows of 2,000 numbers: correlations have a standard deviation of 0.022
    assert np.abs(np.corrcoef(values) - np.eye(12)).max() < 0.1
    for lag in range(1, 9):
        assert abs(np.corrcoef(values[:, lag:].ravel(), values[:, :-lag].ravel())[0, 1]) < 0.03
    # more numbers go on where fewer end, and a sample's are its own whatever is drawn with it
    assert np.array_equal(
        gumbel(keys[3:4], samples[3:4], steps[1][:1], 3001)[0, :2000], values[9]
    )


def test_tokens_of_several_blocks_are_as_frequent_as_they_are_probable():
    """Two whole blocks and a part of one, some of whose tokens cannot occur."""
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(2 * BLOCK + 88, generator=generator)
    logits[::7] = -torch.inf
    n = 30_000
    search = begun(n, ends=torch.zeros(len(logits), dtype=bool), temperature=0.9)
    search.advance(logits[None])
    counts = np.bincount(search.finished_tokens[0, :, 0], minlength=len(logits))
    chance = (logits / 0.9).softmax(0).double().numpy()
    assert counts[chance == 0].sum() == 0
    usual = n * chance >= 5  # chi-squared needs as much
    observed = [*counts[usual], counts[~usual].sum()]
    expected = n * np.array([*chance[usual], chance[~usual].sum()])
    assert chisquare(observed, expected / expected.sum() * n).pvalue > 0.01


def test_impossible_tokens_count_for_nothing():
    """1/2, 1/4, 1/4 and an impossible token: 2/3 ln(4/3) + 1/3 ln(2/3) of self-certainty."""
    assert entropies(torch.tensor([[0.0, -torch.inf]])).item() == 0
    logprob = torch.tensor([[0.5, 0.25, 0.25, 0.0]]).log()
    entropy, certainty, margin = measure_distributions(logprob)[0].tolist()
    assert entropy == pytest.approx(1.5 * math.log(2))
    assert certainty == pytest.approx(2 / 3 * math.log(4 / 3) + math.log(2 / 3) / 3)
    assert margin == pytest.approx(0.25)


def test_weights_that_overflow_are_refused():
    with pytest.raises(FloatingPointError, match="not finite, so nothing can be drawn"):
        begun(2).advance(torch.tensor([[torch.nan, 0.0, 0.0]]))


def test_vllm_draws_no_samples():
    with pytest.raises(ValueError, match="backend transformers, not vllm"):
        generate_beams(VllmModel.__new__(VllmModel), None, "", ["a"], Search(draw=DRAW))
