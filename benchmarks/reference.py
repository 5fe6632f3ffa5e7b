"""Beam search by transformers' own `generate`: what decoding is compared with."""

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.answers.decode import Beam


def generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[str],
    *,
    n_beams: int = 10,
    max_new_tokens: int = 30,
    early_stopping: bool = False,
    add_special_tokens: bool = True,
) -> list[list[Beam]]:
    """Return the beams of each prompt, text and score only.

    Several prompts are padded on the left to one batch.
    """
    encoded = tokenizer(
        list(prompts),
        return_tensors="pt",
        add_special_tokens=add_special_tokens,
        **({"padding": True, "padding_side": "left"} if len(prompts) > 1 else {}),
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
    beams = [
        Beam(text.split("\n")[0], score, 0, *[None] * 4)
        for text, score in zip(texts, output.sequences_scores.tolist(), strict=True)
    ]
    return [beams[i : i + n_beams] for i in range(0, len(beams), n_beams)]
