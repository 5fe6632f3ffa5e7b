"""Beam search done by `generate`, one whole prompt at a time."""

import numpy as np
import torch

from persistcal.answers.decode import Beam, generate_beams


def one_by_one(
    model,
    tokenizer,
    prompts,
    n_beams=10,
    max_new_tokens=30,
    early_stopping=False,
    add_special_tokens=True,
):
    """The reference: `generate` on each whole prompt alone."""
    answers = []
    for prompt in prompts:
        encoded = tokenizer(
            [prompt], return_tensors="pt", add_special_tokens=add_special_tokens
        ).to(model.device)
        with torch.inference_mode():
            output = model.generate(
                input_ids=encoded["input_ids"],
                attention_mask=encoded["attention_mask"],
                num_beams=n_beams,
                num_return_sequences=n_beams,
                length_penalty=0.0,
                early_stopping=early_stopping,
                do_sample=False,
                stop_strings=["\n"],
                tokenizer=tokenizer,
                max_new_tokens=max_new_tokens,
                return_dict_in_generate=True,
                output_scores=True,
            )
        new = output.sequences[:, encoded["input_ids"].shape[1] :]
        texts = tokenizer.batch_decode(new, skip_special_tokens=True)
        scores = output.sequences_scores.tolist()
        answers.append(
            [Beam(t.split("\n")[0], s, 0, None) for t, s in zip(texts, scores, strict=True)]
        )
    return answers


def assert_same_beams(beams, expected):
    """Equal texts in the same order, and scores within 1e-4."""
    assert len(beams) == len(expected)
    for ours, theirs in zip(beams, expected, strict=True):
        assert [beam.text for beam in ours] == [beam.text for beam in theirs]
        np.testing.assert_allclose(
            [beam.logprob for beam in ours], [beam.logprob for beam in theirs], atol=1e-4
        )


def assert_decodes_like_generate(model, tokenizer, prefix, suffixes, **sizes):
    """`generate_beams` agrees with `generate`; works for any model and prompts."""
    expected = one_by_one(model, tokenizer, [prefix + s for s in suffixes], **sizes)
    for batch_size in (1, 3, 8):
        beams = generate_beams(
            model, tokenizer, prefix, suffixes, batch_size=batch_size, **sizes
        )
        assert_same_beams(beams, expected)
    return expected
