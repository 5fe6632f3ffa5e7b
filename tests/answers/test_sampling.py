"""Samples: reproducible, and distributed like the model's probabilities."""

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
    BeamSearch,
    Sampling,
    gumbel,
    nucleus,
    philox,
    question_key,
    rank_tokens,
)
from persistcal.answers.decode import Draw, Search, generate_beams
from persistcal.models.batches import Work

torch.set_num_threads(1)

PREFIX = "Prompt: Which country is Oslo in?\nAnswer: Norway\n\n"
SUFFIXES = [f"Prompt: Which {word}?\nAnswer:" for word in ("Oslo", "country is in", "a", "Nor")]
DRAW = Draw(temperature=0.7, top_p=0.8, seed=3)


def draw_samples(draw=DRAW, batch_size=3, n=5, max_new_tokens=6, suffixes=SUFFIXES, **settings):
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


def test_samples_do_not_depend_on_batches_shards_or_the_number_of_samples():
    expected = draw_samples(batch_size=1)
    assert len(set(np.ravel(texts(expected)))) > 10
    for batch_size in (3, 8):
        answers = draw_samples(batch_size=batch_size)
        assert texts(answers) == texts(expected)
        for samples, expected_samples in zip(answers, expected, strict=True):
            np.testing.assert_allclose(
                [s[1:7] for s in samples], [s[1:7] for s in expected_samples], atol=1e-4
            )
    shards = [draw_samples(batch_size=1, work=Work(shard, 3)) for shard in range(3)]
    together = [next(filter(None, parts)) for parts in zip(*shards, strict=True)]
    assert texts(together) == texts(expected)
    assert texts(draw_samples(suffixes=SUFFIXES[::-1])) == texts(expected)[::-1]
    assert texts(draw_samples(n=3)) == [samples[:3] for samples in texts(expected)]
    assert texts(draw_samples(replace(DRAW, seed=18))) != texts(expected)


@pytest.mark.parametrize("draw", [None, Draw(0.5, 0.7, 1)])
def test_measures_of_an_answer_equal_a_full_forward_pass(draw, monkeypatch):
    """Both beams and samples are compared with a full forward pass of each."""
    searches, texts_of = [], decode.beams_of

    def record_search(finished, *rest, **settings):
        searches.append(finished)
        return texts_of(finished, *rest, **settings)

    monkeypatch.setattr(decode, "beams_of", record_search)
    model, tokenizer = tiny_model(), tiny_tokenizer()
    prompt = tokenizer(PREFIX + SUFFIXES[1])["input_ids"]
    [answers] = draw_samples(draw, suffixes=SUFFIXES[1:2])
    for tokens, answer in zip(searches[0].tokens[0].tolist(), answers, strict=True):
        ids = [token for token in tokens if token >= 0]
        logits = model(torch.tensor([prompt + ids], device=model.device)).logits
        logprob = logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        chosen = logprob[range(len(ids)), ids]
        means = [np.mean(values) for values in zip(*map(measure_slowly, logprob), strict=True)]
        assert answer.n_tokens == len(ids)
        expected = [chosen.sum().item(), *means, chosen.min().item()]
        assert [answer[1], *answer[3:7]] == pytest.approx(expected, abs=1e-4)


def measure_slowly(logprob):
    """Return entropy, divergence from the uniform distribution, and margin of one token."""
    p = logprob.double().exp().tolist()
    entropy = -sum(x * math.log(x) for x in p)
    certainty = sum(math.log(1 / len(p) / x) for x in p) / len(p)
    first, second = sorted(p, reverse=True)[:2]
    return entropy, certainty, first - second


# A Markov chain over a, b and the end: probabilities of the next token after each.
A, B, END = 0, 1, 2
NEXT = {None: [0.5, 0.3, 0.2], A: [0.2, 0.3, 0.5], B: [0.6, 0.1, 0.3]}
ENDS = torch.tensor([False, False, True])


def start_sampling(n_samples, max_new_tokens=1, ends=ENDS, temperature=1.0, top_p=1.0):
    """Start the samples of one question."""
    sizes = {"n_samples": n_samples, "max_new_tokens": max_new_tokens, "ends": ends}
    return Sampling(["q"], **sizes, temperature=temperature, top_p=top_p, seed=17)


def chain(n_samples, **settings):
    """Draw samples of at most three tokens."""
    search = start_sampling(n_samples, max_new_tokens=3, **settings)
    search.advance(torch.tensor([NEXT[None]]).log())
    while len(rows := search.is_growing.flatten().nonzero()[:, 0]):
        last = search.token.flatten()[rows].tolist()
        search.advance(torch.tensor([NEXT[token] for token in last]).log(), rows)
    samples = search.finished_tokens[0].tolist()
    return [tuple(token for token in tokens if token >= 0) for tokens in samples]


def sequences(temperature=1.0, keep=lambda p: p):
    """Return every sequence of the chain with its probability."""
    probabilities = {}
    for tokens in product((A, B, END), repeat=3):
        probability, last, done = 1.0, None, []
        for token in tokens:
            p = keep(np.array(NEXT[last]) ** (1 / temperature))
            probability *= p[token] / p.sum()
            done.append(token)
            last = token
            if token == END:
                break
        probabilities[tuple(done)] = probability
    return probabilities


def cut_to_nucleus(p):
    """Return the nucleus of 0.6 of the chain: a token after b, otherwise two."""
    ranked = np.sort(p / p.sum())[::-1]
    least = ranked[np.searchsorted(ranked.cumsum(), 0.6 - 1e-9)]
    return np.where(p / p.sum() >= least, p, 0)


@pytest.mark.parametrize(
    ("settings", "probabilities"),
    [
        ({}, sequences()),
        ({"temperature": 0.5}, sequences(0.5)),
        ({"top_p": 0.6}, sequences(keep=cut_to_nucleus)),
    ],
)
def test_frequencies_of_samples_follow_their_probabilities(settings, probabilities):
    n = 4000
    counts = Counter(chain(n, **settings))
    possible = {tokens: p for tokens, p in probabilities.items() if p > 0}
    assert sum(possible.values()) == pytest.approx(1)
    assert set(counts) <= set(possible)
    observed = [counts[tokens] for tokens in possible]
    assert chisquare(observed, n * np.array(list(possible.values()))).pvalue > 0.01


def test_a_low_temperature_or_a_small_nucleus_is_greedy():
    # a is the most likely first token, and the end the most likely second one
    assert set(chain(50, temperature=1e-4)) == {(A, END)}
    assert set(chain(50, top_p=1e-6)) == {(A, END)}


def test_the_nucleus_equals_that_of_transformers():
    logits = torch.randn(40, 30, generator=torch.Generator().manual_seed(0)) * 3
    for top_p in (0.05, 0.5, 0.9, 0.999):
        expected = TopPLogitsWarper(top_p)(None, logits)
        kept = nucleus(logits.softmax(-1), top_p)
        assert torch.equal(kept > 0, expected > -torch.inf)


# Counter, key and output, published by the generator's authors in their library Random123
ONES = 0xFFFFFFFF
PUBLISHED = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def test_the_random_generator_gives_the_published_numbers():
    counters, keys, expected = zip(*PUBLISHED, strict=True)
    words = philox(torch.tensor(counters).unbind(1), torch.tensor(keys).unbind(1))
    assert torch.equal(torch.stack(words, dim=1), torch.tensor(expected))


def test_noise_is_gumbel_and_independent_between_questions_seeds_and_steps():
    """Correlations are between questions, seeds, samples, steps and neighbours."""
    keys = [question_key(17, "Who?"), question_key(17, "Where?"), question_key(18, "Who?")]
    keys, samples = torch.tensor(keys).repeat_interleave(2, dim=0), torch.arange(2).repeat(3)
    steps = torch.zeros_like(samples), torch.ones_like(samples)
    values = torch.cat([gumbel(keys, samples, step, 2000) for step in steps]).numpy()
    assert kstest(values.ravel(), "gumbel_r").pvalue > 0.01
    # 12 rows of 2,000 numbers: correlations have a standard deviation of 0.022
    assert np.abs(np.corrcoef(values) - np.eye(12)).max() < 0.1
    for lag in range(1, 9):
        assert abs(np.corrcoef(values[:, lag:].ravel(), values[:, :-lag].ravel())[0, 1]) < 0.03
    # A longer draw begins with the same numbers, and other samples do not change them.
    assert np.array_equal(
        gumbel(keys[3:4], samples[3:4], steps[1][:1], 3001)[0, :2000], values[9]
    )


def test_frequencies_of_tokens_in_several_blocks_follow_their_probabilities():
    """Two whole blocks and a partial one, with some impossible tokens."""
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(2 * BLOCK + 88, generator=generator)
    logits[::7] = -torch.inf
    n = 15_000
    search = start_sampling(n, ends=torch.zeros(len(logits), dtype=bool), temperature=0.9)
    search.advance(logits[None])
    counts = np.bincount(search.finished_tokens[0, :, 0], minlength=len(logits))
    chance = (logits / 0.9).softmax(0).double().numpy()
    assert counts[chance == 0].sum() == 0
    usual = n * chance >= 5  # needed for a chi-squared test
    observed = [*counts[usual], counts[~usual].sum()]
    expected = n * np.array([*chance[usual], chance[~usual].sum()])
    assert chisquare(observed, expected / expected.sum() * n).pvalue > 0.01


def test_impossible_tokens_do_not_count():
    """1/2, 1/4, 1/4 and an impossible token: 2/3 ln(4/3) + 1/3 ln(2/3) is self-certainty."""
    assert rank_tokens(torch.tensor([[3.0, -torch.inf]]), 2).measured[0, 0] == 0
    logits = torch.tensor([[0.5, 0.25, 0.25, 0.0]]).log() + 3
    entropy, certainty, margin = rank_tokens(logits, 2).measured[0].tolist()
    assert entropy == pytest.approx(1.5 * math.log(2))
    assert certainty == pytest.approx(2 / 3 * math.log(4 / 3) + math.log(2 / 3) / 3)
    assert margin == pytest.approx(0.25)


def test_logits_that_are_not_finite_are_refused():
    sizes = {"n_beams": 2, "n_candidates": 4, "max_new_tokens": 5, "ends": ENDS}
    for search in (start_sampling(2), BeamSearch(1, **sizes)):
        search.advance(torch.tensor([[torch.nan, 0.0, 0.0]]))
        with pytest.raises(FloatingPointError, match="not finite, so they rank no token"):
            search.count_growing()
