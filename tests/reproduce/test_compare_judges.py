"""Judges compared on the sixty answers that a person labelled."""

import re
from collections import Counter

import pytest
import yaml
from judge_server import KEY, FakeJudge, completion

from persistcal.judge.messages import split_prompt
from persistcal.questions.labels import LABELS
from reproduce.compare_judges import EXAMPLES, as_markdown, labels_by, read_examples

LETTERS = {"R": "correct", "W": "incorrect", "N": "not_attempted"}
PUBLISHED = "Q: {question}\nGold: {references_line}\nPredicted: {answer}\nR, W or N?"


@pytest.fixture(scope="module")
def examples():
    return read_examples(EXAMPLES)


class LetterJudge(FakeJudge):
    """Reply with bold letters: R for a reference, N for dots, W for other answers."""

    def grade(self, body):
        [message] = body["messages"]
        gold, answer = re.search(r"Gold: (.*)\nPredicted: (.*)\n", message["content"]).groups()
        letter = "N" if answer == "..." else "R" if answer == gold else "W"
        return completion(f"**Label:** {letter}")


def test_the_sixty_examples_have_every_label_and_many_rules(examples):
    assert len(examples) == 60
    assert set(Counter(example.label for example in examples)) == set(LABELS)
    assert len({example.rule for example in examples}) > 15
    assert len({example[1:4] for example in examples}) == 60


def test_two_judges_are_compared_by_rule_and_answer(examples, tmp_path):
    labels = {}
    for backend in ("lexical", "exact_match"):
        config = tmp_path / f"{backend}.yaml"
        config.write_text(yaml.safe_dump({"judge": {"backend": backend}}))
        labels[backend] = labels_by(config, examples, tmp_path)
    page = as_markdown(examples, labels)
    # "NASA", "Beatles" and "Ouagadougou" need no model
    assert "| capitals and punctuation | 3 | 3 | 3 |" in page
    # Exact match accepts only "Dog", and not "Siam", "the UK" and "Octavian".
    assert "| other name | 4 | 1 | 1 |" in page
    assert (
        "| Which country is London in? | United Kingdom | the UK | correct | incorrect |"
        in page
    )
    assert "| Which country is Oslo in? |" not in page


def test_a_published_prompt_with_letters_gives_labels(examples, tmp_path, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", KEY)
    (tmp_path / "published.txt").write_text(PUBLISHED)
    assert split_prompt(PUBLISHED)[0] == ""

    with LetterJudge() as judge:
        config = tmp_path / "letters.yaml"
        settings = {
            **{"backend": "openai", "model": "m", "base_url": judge.server.url_for("/v1")},
            **{"api_key_env": "JUDGE_KEY", "together": False, "labels": LETTERS},
        }
        prompts = {"judge": str(tmp_path / "published.txt")}
        config.write_text(yaml.safe_dump({"judge": settings, "prompts": prompts}))
        labels = labels_by(config, examples, tmp_path / "judges")

    for example, label in zip(examples, labels, strict=True):
        gold = (
            example.references[0]
            if len(example.references) == 1
            else str([*example.references])
        )
        expected = "correct" if example.answer == gold else "incorrect"
        assert label == ("not_attempted" if example.answer == "..." else expected)
