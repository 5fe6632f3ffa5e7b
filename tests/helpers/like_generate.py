"""Beam search done by `generate`, one whole prompt at a time."""

import numpy as np

from benchmarks.reference import generate
from persistcal.answers.decode import Search, generate_beams


def one_by_one(model, tokenizer, prompts, **sizes):
    """Return the reference beams: `generate` on one whole prompt at a time."""
    return [beams for text in prompts for beams in generate(model, tokenizer, [text], **sizes)]


def assert_same_beams(beams, expected):
    """Equal texts in the same order, and scores within 1e-4."""
    assert len(beams) == len(expected)
    for actual_beams, expected_beams in zip(beams, expected, strict=True):
        assert [beam.text for beam in actual_beams] == [beam.text for beam in expected_beams]
        np.testing.assert_allclose(
            [beam.logprob for beam in actual_beams],
            [beam.logprob for beam in expected_beams],
            atol=1e-4,
        )


def assert_decodes_like_generate(model, tokenizer, prefix, suffixes, batch_sizes=(3,), **sizes):
    """`generate_beams` agrees with `generate`; works for any model and prompts."""
    expected = one_by_one(model, tokenizer, [prefix + s for s in suffixes], **sizes)
    for batch_size in batch_sizes:
        search = Search(**sizes, batch_size=batch_size)
        beams = generate_beams(model, tokenizer, prefix, suffixes, search)
        assert_same_beams(beams, expected)
    return expected
