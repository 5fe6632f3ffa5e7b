"""Prompts of chat models."""

import generate_beams as script
import pytest
from adapter_files import write_checkpoints
from answer_tables import questions_table
from jobs import ABOUT, beams_job
from records import write_record
from tiny_models import CHAT, tiny_tokenizer

from persistcal.store import artifacts

EXAMPLES = [
    ("Which country is city 0 in?", "Norway"),
    ("Which country is city x1 in?", "Norway"),
]
QUESTION = "Which country is city xx2 in?"
PAIRS = "".join(f"Prompt: {question}\nAnswer: {answer}\n\n" for question, answer in EXAMPLES)


@pytest.fixture
def study(tmp_path):
    write_checkpoints(tmp_path, ["a"], n_train=3, n_test=2)
    questions = questions_table(n_train=3, n_test=2)
    questions.loc[:1, "split"] = "few_shot"
    path = tmp_path / "questions.parquet"
    artifacts.write(questions, path, artifacts.QUESTIONS, values=ABOUT)
    return tmp_path


@pytest.mark.parametrize(
    ("chat", "expected_prompt"),
    [
        (
            "turns",
            f"<user>{EXAMPLES[0][0]}</><assistant>Norway</><user>{EXAMPLES[1][0]}</>"
            f"<assistant>Norway</><user>{QUESTION}</><assistant><think></think>",
        ),
        (
            "one_message",
            "<user>Here are 2 examples of a prompt and its answer:\n\n"
            f"{PAIRS}---\n\n"
            "Now answer this prompt with a concise phrase, as the examples do.\n\n"
            f"Prompt: {QUESTION}\nAnswer:</><assistant><think></think>",
        ),
        ("", f"{PAIRS}Prompt: {QUESTION}\nAnswer:"),
    ],
)
def test_examples_are_turns_one_message_or_text(study, monkeypatch, chat, expected_prompt):
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(study / "a")
    write_record(study / "a", study / "a.json")
    decode, texts = script.decode, []

    def record_prompts(model, tokenizer, prefix, suffixes, search, **settings):
        assert settings["add_special_tokens"] == (not chat)
        texts.extend(prefix + suffix for suffix in suffixes)
        return decode(model, tokenizer, prefix, suffixes, search, **settings)

    monkeypatch.setattr(script, "decode", record_prompts)
    beams_job(study, study / "beams.parquet", n_examples=2, chat=chat, max_new_tokens=2)
    assert texts[0] == expected_prompt
    assert len(texts) == 1


def test_a_model_without_a_chat_template_is_refused_before_it_is_loaded(study, monkeypatch):
    monkeypatch.setattr("persistcal.models.load.open_model", None)
    with pytest.raises(ValueError, match="has no chat template; set the model's chat to false"):
        beams_job(study, study / "beams.parquet", chat="turns")
