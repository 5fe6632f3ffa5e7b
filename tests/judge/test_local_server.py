"""A judge without a bill: vLLM's server with SmolLM2, a poor but real judge.

Run by ``make test-judge``, as docs/judge.md says to do it.
"""

import csv

import pytest
from judge_server import PROMPT
from local_server import VLLM, smollm2_served

from persistcal.judge.messages import JudgeSettings, candidate_of
from persistcal.judge.run import judge_candidates
from persistcal.questions.labels import JudgeError

pytestmark = pytest.mark.skipif(
    not VLLM, reason="needs vLLM and SmolLM2: make test-judge downloads them"
)

LABELS = ["CORRECT", "INCORRECT", "NOT ATTEMPTED"]
ONLY_LABELS = {"structured_outputs": {"choice": LABELS}}
CAPITALS = {"Peru": "Lima", "Mali": "Bamako", "Chad": "N'Djamena", "Cuba": "Havana"}
CANDIDATES = [
    candidate_of(f"What is the capital of {country}?", [capital], answer)
    for country, capital in CAPITALS.items()
    for answer in (capital, "Oslo", "no idea")
]
# What a judge without instructions does: it talks.
TALK = "You tell long stories.\n---\nTell me of {question} {references} {answer}"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with smollm2_served(tmp_path_factory.mktemp("smollm2")) as address:
        yield address


def judge(folder, address, candidates, **changes):
    settings = {
        "backend": "openai",
        "model": "smollm2",
        "prompt": PROMPT,
        "base_url": address,
        "request": {"temperature": 0, "max_tokens": 8},
        "concurrency": 4,
        "timeout_s": 300,
        "retries": 0,
        "price_input": 0,
        "price_output": 0,
        "max_requests": 1000,
        "max_cost": 0,
    }
    noted = folder / "noted.csv"
    how = JudgeSettings(**{**settings, **changes})
    return judge_candidates(candidates, folder, how, noted=noted, api_key="none")


def test_labels_come_back_and_are_kept(tmp_path, address):
    # SmolLM2 spells NOT ATTEMPTED in more than eight tokens.
    request = {"temperature": 0, "max_tokens": 16, **ONLY_LABELS}
    labels = judge(tmp_path, address, CANDIDATES, request=request)
    assert {source for _, source in labels} == {"smollm2"}
    names = {label.lower().replace(" ", "_") for label in LABELS}
    assert {label for label, _ in labels} <= names and len(labels) == 12
    assert not (tmp_path / "queue.csv").exists()
    # Nothing is asked twice: no server is there any more.
    again = judge(tmp_path, "http://127.0.0.1:9/v1", CANDIDATES, request=request)
    assert again == labels


def test_replies_that_are_no_label_wait_for_a_person(tmp_path, address):
    with pytest.raises(JudgeError, match="5 answers wait for a person"):
        judge(tmp_path, address, CANDIDATES[:5], prompt=TALK)
    with (tmp_path / "queue.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 and {row["reason"] for row in rows} == {"malformed"}
    assert all(row["reply"] for row in rows)
    go_on = judge(tmp_path, address, CANDIDATES[:5], prompt=TALK, undecided="not_attempted")
    assert go_on == [("not_attempted", "queue")] * 5


def test_a_judge_that_gives_no_labels_is_stopped(tmp_path, address):
    many = [candidate_of(f"What is {i} + {i}?", [str(2 * i)], "3") for i in range(20)]
    with pytest.raises(JudgeError, match="None of these replies is kept"):
        judge(tmp_path, address, many, prompt=TALK)
    assert not (tmp_path / "queue.csv").exists()


def test_a_model_that_is_not_served_stops_the_job_with_the_servers_words(tmp_path, address):
    with pytest.raises(JudgeError, match="does not exist"):
        judge(tmp_path, address, CANDIDATES[:1], model="gpt-5.4")
