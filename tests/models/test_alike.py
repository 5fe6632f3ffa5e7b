"""Checkpoints of a model that can share an adapter, and checkpoints that cannot."""

import pytest
from tiny_models import TEXT, tiny_model, tiny_tokenizer

from persistcal.models.checkpoint import local_checkpoint
from persistcal.models.load import check_alike
from persistcal.store.files import DamagedFileError

PROMPTS = ["Which country is Oslo in?", "Norway 0123"]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("states")
    larger_tokens = tiny_tokenizer(TEXT + " Oslo" * 9 + " Norway" * 9, vocab_size=296)
    extended = tiny_tokenizer()
    extended.add_special_tokens({"additional_special_tokens": ["<|user|>"]})
    models = {
        "base": (tiny_model(), tiny_tokenizer()),
        "tuned": (tiny_model(seed=1), tiny_tokenizer()),
        "chatty": (tiny_model(seed=2), extended),
        "narrow": (tiny_model(hidden=16), tiny_tokenizer()),
        "deep": (tiny_model(layers=4), tiny_tokenizer()),
        "foreign": (tiny_model(seed=3), larger_tokens),
    }
    for name, (model, tokenizer) in models.items():
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return {name: local_checkpoint(folder / name) for name in models}


def test_checkpoints_of_one_architecture_train_together_even_with_added_tokens(records):
    check_alike({name: records[name] for name in ("base", "tuned", "chatty")}, PROMPTS)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("narrow", r"layers.0.self_attn.q_proj is \(16, 16\) in narrow and \(32, 32\) in base"),
        ("deep", r"is \(32, 32\) in deep and missing in base"),
        (
            "foreign",
            r"their vocabularies read 'Which country is Oslo in\?' as different tokens",
        ),
    ],
)
def test_checkpoints_of_other_shapes_or_words_are_refused_by_name(records, name, message):
    pair = {name: records[name], "base": records["base"]}
    with pytest.raises(
        DamagedFileError, match=f"{name} and base cannot share.*{message}"
    ) as error:
        check_alike(pair, PROMPTS)
    assert "train_on each" in str(error.value)
