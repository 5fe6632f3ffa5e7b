"""Models in a notebook give the numbers of the workflow's functions."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny_models import TEMPLATE, save_tiny, tiny_model, tiny_tokenizer

import persistcal
from persistcal.answers import decode
from persistcal.api.checkpoints import LoadedCheckpoint

ANSWERS = pd.DataFrame(
    {
        "checkpoint": ["a", "a", "b", "b"],
        "question_id": ["1", "2", "1", "2"],
        "question": ["Which country is Oslo in?", "Which country is Uppsala in?"] * 2,
        "answer": ["Norway", "Norway", "Sweden", "Sweden"],
        "correct": [1, 0, 0, 1],
    }
)


def checkpoint(seed=0):
    return LoadedCheckpoint(tiny_model(seed=seed), tiny_tokenizer())


def test_generate_beams_returns_the_workflows_beams_after_the_examples(tmp_path):
    save_tiny(tmp_path)
    loaded = persistcal.load(str(tmp_path), device="cpu")
    size = {"n_beams": 3, "max_new_tokens": 4}
    question = {"q": "Which country is Oslo in?"}
    rows = persistcal.generate_beams(loaded, question, [("Is it Oslo?", "Norway")], **size)
    prefix = "Prompt: Is it Oslo?\nAnswer: Norway\n\n"
    suffix = "Prompt: Which country is Oslo in?\nAnswer:"
    [expected] = decode.generate_beams(*checkpoint(), prefix, [suffix], decode.Search(**size))
    assert list(rows["question_id"]) == ["q"] * 3 and list(rows["beam"]) == [0, 1, 2]
    shown = rows.drop(columns=["question_id", "beam"])
    assert list(shown) == [*decode.Beam._fields]
    assert [tuple(row) for row in shown.itertuples(index=False)] == [*map(tuple, expected)]


def test_the_code_of_the_documentation_rates_an_answer(tmp_path):
    save_tiny(tmp_path)
    text = Path("docs/api.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(checkpoint = .*?)```", text, flags=re.DOTALL)
    *lines, last = code.strip().split("\n")
    hub, names = '"EleutherAI/pythia-160m", "step143000"', {"pd": pd, "persistcal": persistcal}
    assert hub in code
    exec("\n".join(lines).replace(hub, f'"{tmp_path}", device="cpu"'), names)
    [confidence] = eval(last, names)
    assert 0 <= confidence <= 1


def test_an_adapter_learns_its_answers_and_does_not_change_the_model(tmp_path):
    checkpoints = {"a": checkpoint(0), "b": checkpoint(1)}
    settings = {"prompt": TEMPLATE, "epochs": 60, "learning_rate": 5e-3}
    history = persistcal.train_adapter(checkpoints, ANSWERS, f"{tmp_path}/new", **settings)
    assert len(history) == 60  # an epoch of two questions is one step
    fresh, rows_of_a = checkpoint(), ANSWERS[ANSWERS["checkpoint"] == "a"]
    scores_before, (right, wrong), scores_after = (
        persistcal.score_answers(fresh, rows_of_a, prompt=TEMPLATE, adapter=adapter)
        for adapter in (None, f"{tmp_path}/new", None)
    )
    assert right > 0.8 and wrong < 0.2
    np.testing.assert_array_equal(scores_after, scores_before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"checkpoint": "c"}, "is in one of them only"),
        ({"question_id": None}, "lacks one of"),
        ({"correct": 0.5}, "must be 0 or 1"),
        ({"weight": 0.0}, "must be above 0"),
    ],
)
def test_training_answers_with_a_wrong_value_are_refused(tmp_path, change, message):
    checkpoints = dict.fromkeys("ab", checkpoint())
    with pytest.raises(ValueError, match=message):
        persistcal.train_adapter(
            checkpoints, ANSWERS.assign(**change), str(tmp_path), prompt=TEMPLATE
        )


def test_checkpoints_with_different_tokenizers_are_refused(tmp_path):
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens("unheard")
    checkpoints = {"a": checkpoint(), "b": LoadedCheckpoint(tiny_model(), tokenizer)}
    with pytest.raises(ValueError, match="tokenizers differ"):
        persistcal.train_adapter(checkpoints, ANSWERS, str(tmp_path), prompt=TEMPLATE)
