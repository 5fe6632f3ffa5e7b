"""Confidences stated in replies: asking replies are read, requested and turned into numbers."""

from functools import partial

import pandas as pd
import pytest
import torch
from answer_server import KEY, FakeModel
from answer_tables import questions_table
from estimation import of_each
from read_confidences import read_confidences
from tiny_models import tiny_model, tiny_tokenizer

from persistcal.confidence.asking import (
    Asking,
    ask_about_answers,
    replies_of_server,
    replies_of_weights,
)
from persistcal.confidence.estimate import AnswerTables, Estimation
from persistcal.confidence.estimators.catalogue import registration_of
from persistcal.confidence.said import guesses, on_scale, probability
from persistcal.store import artifacts

torch.set_num_threads(1)


READ = {
    0.8: """0.8. | .8 | 80% | 8/10 | <0.8> | **Probability:** 0.8 | Probability -> 0.8
I say 4/5 | I am about 80 percent sure. | 0.8 (80%) | 0.1, no</think>0.8""",
    1.0: "1 | Confidence: 1 | My answer is correct with probability 1.",
    0.0: "0",
    0.7: """The probability that the answer is correct is approximately 0.7.
The most likely value is 0.7""",
    0.9: """I'm 90% sure it's right. | Yes, 90% | Correct: 0.9 | 0.9 (high confidence) | ~0.9
There is a 90% chance that it is correct
I’m 90% sure. | I believe the answer is correct: 90 % | My confidence is very high: 0.9""",
}
LINES = {
    "Sure, here it is:\n\n0.8\n\nQuestion: 1 + 1?\nProbability: 0.9": 0.8,
    "<think>0.1 or 0.2?</think>\n0.8": 0.8,
    "0.8\n\nIncorrect answers are in the list.": 0.8,  # a base model continues like this
    "Confidence:\n\n0.9": 0.9,
    "Incorrect:\n0.9": None,
    "No, it's wrong.\n90%": None,
    "The answer is not correct.\n\nConfidence: 90%": None,
    "It is the Nile, not the Po.\n0.8": 0.8,
    "0.9\nthat it is wrong": None,
    "": None,
}
READ[None] = """
<think>0.8 | 0.6 or 0.8 | 0.6-0.8 | 0.6–0.8 | 8 | 80 | 150% | -0.8 | −0.8 | 0,8 | 8e-1 | 3/0
0.5/0.5 | 40/60 | The answer is 1 | Answer: ١
50/50 | 1.2.3 | I cannot say asking probable that is. | 1. Paris | Option 1 | Answer 1 is right
"""
# The probability is about the opposite.
READ[None] += """
10% chance it is wrong | 90% sure it's wrong | not 90% sure | I'm not sure, 0.4
I'm not 90% sure | I am n't 90% sure | I can’t be 90% sure | I cannot give it more, 0.9
Incorrect: 0.9 | 0.9 that it's in-correct | 0.9, untrue | The answer is false, 0.9
0.2 probability of error | I have 20% doubt | The risk is 0.2 | unlikely, 0.9 | barely 20%
90% that it is another city | hardly 0.9 | 0.9 if it means the capital | 90% failure
90% mistaken | 90% inaccurate | uncertainty 0.1 | 90% !correct | !0.9
"""
# Unknown words, also from other languages: the reply is not read.
READ[None] += """
85% falsch | nicht 85 % sicher | faux à 85 % | 不正确 85% | 90% bogus | lack of confidence: 90%
low confidence: 0.9 | 不正确, 85% | Falsch. 85% | 85% (falsch) | Falsch: 0.9 | ❌ 0.9
85 % неверно | 90% incorrecto | 90% BS | zero confidence, 0.9 | confidence lost: 90%
"""
# A bound is not a probability.
READ[None] += """
<0.1 | < 0.1 | > 90% | ≥ 0.9 | ≤0.1 | => 0.9 | over 90% | under 10% | above 0.9 | below 0.1
at least 0.9 | at most 0.1 | more than 90% | less than 10% | higher than 0.9 | 0.9 or more
0.9 or higher | 90%+ | 0.9+ | up to 90% | a minimum of 0.9 | max. 0.9 | almost 90% | nearly 0.9
just short of 0.9 | exceeds 0.9 | beyond 90% | no less than 0.9 | far from 0.9
anything but 0.9 | upwards of 90% | 90% at best
"""


def replies_of(tables):
    """Return pairs of a reply and the key under which it is listed."""
    return [
        (reply, value)
        for value, table in tables.items()
        for line in table.strip("\n").splitlines()
        for reply in line.split(" | ")
    ]


@pytest.mark.parametrize(("reply", "value"), [*replies_of(READ), *LINES.items()])
def test_a_reply_is_read_only_if_its_probability_is_clear(reply, value):
    assert probability(reply) == value


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("G1: Paris\nP1: 0.8\nG2: Rome\nP2: 10%", [("Paris", 0.8), ("Rome", 0.1)]),
        ("**G1:** The U.S.\n**P1:** 0.5", [("The U.S.", 0.5)]),
        ("g1. Paris p1. 0.8 g2. Rome", [("Paris", 0.8), ("Rome", None)]),
        ("P1: 0.8", []),
        ("G1: Paris\nP1: 0.8\n\nQuestion\nG1: Oslo\nP1: 0.1", [("Paris", 0.8)]),
        ("Paris, 0.8", []),
    ],
)
def test_each_guess_gets_the_probability_with_its_number(reply, expected):
    assert guesses(reply) == expected


SCALE = {"Likely": 0.7, "Unlikely": 0.2, "Highly likely": 0.9, "Probably not": 0.25}
SCALE |= {"Prob.": 0.7, "True": 1, "False": 0}

EXPRESSIONS = {
    0.7: """likely. | Prob. likely | It's likely. | Likely correct | "Likely"
The answer is likely to be correct. | Likely. Paris is the capital of France.
Likely, as Paris is the capital""",
    0.2: "I would say: unlikely | Expression: Unlikely",
    0.25: "Probably not | I think that it is probably not correct",
    1: " True",
    0: "(B) False",
}
EXPRESSIONS[None] = """
likely, or highly likely | It isn't likely | Not unlikely | likelihood | I do not know | (A)
True or False | not true | far from likely | barely likely | less likely | more likely
un-likely | un likely | non-likely | very likely | somewhat likely | hardly likely
scarcely likely | anything but likely | likely wrong | likely incorrect | likely to be false
It is likely that it is wrong | likely, but wrong | less than likely | too likely
Is it likely? | I doubt that it is likely | It would be wrong to say likely | Wrong: likely
true-ish | half true | un-true | likely ❌ | 🚫 likely | !likely | ¬likely | 👎, likely
"""


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        *replies_of(EXPRESSIONS),
        # Only the first line is read.
        ("**Highly likely**\nUnlikely", 0.9),
        ("Expression:\nUnlikely", None),
    ],
)
def test_a_reply_is_on_the_scale_only_if_its_expression_is_clear(reply, value):
    assert on_scale(reply, SCALE) == value


def test_an_empty_scale_is_refused():
    for scale in ({}, {" ": 0.5}):
        with pytest.raises(ValueError, match="scale is empty or has an empty expression"):
            on_scale("likely", scale)


# From replies to confidences -------------------------------------------------------------

N = 4
QUESTIONS = questions_table(0, N).assign(question=[f"Fact {i}?" for i in range(N)])
CLUSTERS = pd.DataFrame(
    [(f"q{i}", 0, f"Thing {i}", 0.5, [f"Thing {i}", f"It {i}"]) for i in range(N)],
    columns=["question_id", "cluster", "answer", "probability", "members"],
)
PROMPT = "{question} {answer}?\nProbability:"


def rated(function, replies, **changes):
    """Return confidences and counts for replies by question, one text or several each."""
    rows = [
        (f"q{i}", sample, text)
        for i, texts in enumerate(replies)
        for sample, text in enumerate([texts] if isinstance(texts, str) else texts)
    ]
    table = pd.DataFrame(rows, columns=["question_id", "sample", "text"])
    beams = pd.DataFrame({"question_id": [], "logprob": [], "text": []})
    tables = (of_each({"m": rows}) for rows in (beams, CLUSTERS, CLUSTERS.assign(split="test")))
    settings = {"estimator": "mine", "dataset": "quiz", "read": ["m"], "earlier": []}
    settings |= {"evaluation": ["m"], "equivalence": {}, "function": function, **changes}
    settings |= registration_of(function).for_jobs()
    rows, counts = read_confidences(
        AnswerTables(QUESTIONS, *tables, replies=of_each({"m": table})),
        estimation=Estimation(**settings),
    )
    artifacts.check(rows, artifacts.CONFIDENCES, "")
    artifacts.check(counts, artifacts.UNSAID, "")
    return rows["confidence"].tolist(), counts.to_dict("records")


def test_unreadable_replies_are_left_out_of_means_and_counted(caplog):
    """q1: (0.6 + 0.8) / 2. q2 has no readable reply and gets 0.5."""
    replies = ["0.9", ["0.6", "hm", "80%"], ["hm", "85"], "0"]
    confidences, counts = rated("said_probability", replies)
    assert confidences == pytest.approx([0.9, 0.7, 0.5, 0.0])
    assert counts == [{"checkpoint": "m", "answers": 4, "unsaid": 1}]
    assert "mine: 1 of 4 answers of m have no readable confidence" in caplog.text
    with pytest.raises(ValueError, match=r"mine: none of the 4 answers of .*'m'"):
        rated("said_probability", ["hm"] * 4)


def test_an_answer_gets_the_confidence_of_the_guess_that_matches_it():
    """Guesses match the answer, a member of the cluster, nothing, or lack a probability."""
    replies = [
        "G1: other\nP1: 0.6\nG2: the thing 0!\nP2: 0.3",
        "G1: IT 1\nP1: 0.4\nG2: thing 1\nP2: 0.1",
        "G1: thing 3\nP1: 1.0",
        "G1: thing 3\nP1: high",
    ]
    confidences, counts = rated("said_guesses", replies)
    assert confidences == pytest.approx([0.3, 0.4, 0.0, 0.5])
    assert counts[0]["unsaid"] == 1


def test_the_confidence_of_sampled_words_is_the_share_of_readable_replies():
    """q0: two of three readable replies are True. q3 has no readable reply."""
    replies = [["True", "false", "True", "hm"], ["True", "False"], "False", "maybe"]
    confidences, _ = rated("said_words", replies, scale={"True": 1, "False": 0})
    assert confidences == pytest.approx([2 / 3, 0.5, 0.0, 0.5])


# Weights and servers ---------------------------------------------------------------------


def asking(**changes):
    settings = {"prompt": PROMPT, "n_samples": 2, "temperature": 0.7, "max_new_tokens": 6}
    return Asking(**{**settings, "seed": 17, **changes})


def test_greedy_replies_equal_generate_of_transformers_with_all_lines():
    model, tokenizer = tiny_model(seed=3), tiny_tokenizer()
    prompts = ["Which country is Oslo in?", "A prompt\nof lines\n"]
    settings = asking(n_samples=1, temperature=0, max_new_tokens=20)
    replies = replies_of_weights(model, tokenizer, prompts, settings)
    for prompt, [reply] in zip(prompts, replies, strict=True):
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        whole = model.generate(ids, do_sample=False, max_new_tokens=20, pad_token_id=0)
        expected = tokenizer.decode(whole[0, ids.shape[1] :], skip_special_tokens=True)
        assert reply == expected and reply


def reply_function(served, fake, folder):
    return partial(
        replies_of_server, served, fake.reach(), str(folder), str(folder / "replies")
    )


def test_replies_of_weights_and_of_a_server_give_the_same_confidences(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    texts = {0: "0.9", 1: "60%\n", 2: "I cannot say", 3: "Well:\n1/4"}

    def reply_of_weights(prompts, _):
        return [[texts[int(prompt.split("?")[0][-1])]] * 2 for prompt in prompts]

    local = ask_about_answers(QUESTIONS, CLUSTERS, reply_of_weights, asking(), "test")
    with FakeModel(tmp_path) as fake:
        fake.write_answer = lambda prompt, _: texts[int(prompt.split("?")[0][-1])]
        ask = reply_function(fake.served(logprobs=True), fake, tmp_path)
        served = ask_about_answers(QUESTIONS, CLUSTERS, ask, asking(), "test")
        prompts = [f"Fact {i}? Thing {i}?\nProbability:" for i in range(N)]
        assert fake.bodies[0]["prompt"] in prompts
        assert {"logprobs", "stop"}.isdisjoint(fake.bodies[0])
        assert (fake.bodies[0]["max_tokens"], fake.bodies[0]["temperature"]) == (6, 0.7)
        # A second call finds the stored replies.
        repeated = ask_about_answers(QUESTIONS, CLUSTERS, ask, asking(), "test")
        assert len(fake.bodies) == fake.booked == fake.kept == 2 * N
    for frame in (local, served):
        artifacts.check(frame, artifacts.REPLIES, "")
    pd.testing.assert_frame_equal(served, repeated)
    confidences = [
        rated("said_probability", [*frame.groupby("question_id")["text"].agg(list)])
        for frame in (local, served)
    ]
    assert confidences[0] == confidences[1]
    assert confidences[0][0] == pytest.approx([0.9, 0.6, 0.5, 0.25])


def test_a_chat_model_gets_a_message_with_the_scale(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FakeModel(tmp_path) as fake:
        ask = reply_function(fake.served(), fake, tmp_path)
        settings = asking(
            prompt="{question} {scale}", chat="turns", n_samples=1, scale=["a", "b"]
        )
        ask_about_answers(QUESTIONS, CLUSTERS, ask, settings, "test")
        messages = {body["messages"][-1]["content"] for body in fake.bodies}
        assert messages == {f"Fact {i}? a, b" for i in range(N)}
        with pytest.raises(ValueError, match=r"lacks the field \{question\}"):
            ask_about_answers(QUESTIONS, CLUSTERS, ask, asking(prompt="{answer}"), "test")
