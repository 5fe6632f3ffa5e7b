"""States of a model that can share an adapter, and those that cannot."""

import pytest
from tiny_models import TEXT, tiny_model, tiny_tokenizer

from persistcal.models.checkpoint import local_checkpoint
from persistcal.models.load import check_alike
from persistcal.store.files import DamagedFileError

PROMPTS = ["Which country is Oslo in?", "Norway 0123"]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("states")
    glued = tiny_tokenizer(TEXT + " Oslo" * 9 + " Norway" * 9, vocab_size=296)
    more = tiny_tokenizer()
    more.add_special_tokens({"additional_special_tokens": ["<|user|>"]})
    made = {
        "base": (tiny_model(), tiny_tokenizer()),
        "tuned": (tiny_model(seed=1), tiny_tokenizer()),
        "chatty": (tiny_model(seed=2), more),
        "narrow": (tiny_model(hidden=16), tiny_tokenizer()),
        "deep": (tiny_model(layers=4), tiny_tokenizer()),
        "foreign": (tiny_model(seed=3), glued),
    }
    for name, (model, tokenizer) in made.items():
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return {name: local_checkpoint(folder / name) for name in made}


def test_one_architecture_trains_together_even_with_tokens_of_its_own(records):
    check_alike({name: records[name] for name in ("base", "tuned", "chatty")}, PROMPTS)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("narrow", r"layers.0.self_attn.q_proj is \(16, 16\) in narrow and \(32, 32\) in base"),
        ("deep", r"is \(32, 32\) in deep and missing in base"),
        (
            "foreign",
            r"their vocabularies read 'Which country is Oslo in\?' as different tokens",
        ),
    ],
)
def test_other_shapes_and_vocabularies_are_refused_by_name(records, other, said):
    pair = {other: records[other], "base": records["base"]}
    said = f"{other} and base cannot share.*{said}"
    with pytest.raises(DamagedFileError, match=said) as error:
        check_alike(pair, PROMPTS)
    assert "train_on each" in str(error.value)
