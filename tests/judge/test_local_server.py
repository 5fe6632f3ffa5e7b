"""A judge without costs: vLLM's server with SmolLM2, a poor but real judge.

Run by ``make test-judge``, following docs/judge.md.
"""

import csv
import os

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
# Without instructions a model does not give labels.
TALK = "You tell long stories.\n---\nTell me of {question} {references} {answer}"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with smollm2_served(tmp_path_factory.mktemp("smollm2")) as address:
        yield address


def judge(folder, address, candidates, **changes):
    settings = {
        **{"backend": "openai", "model": "smollm2", "prompt": PROMPT, "base_url": address},
        **{"request": {"temperature": 0, "max_tokens": 8}, "concurrency": 4, "timeout_s": 300},
        **{"retries": 0, "price_input": 0, "price_output": 0, "max_requests": 1000},
        "max_cost": 0,
    }
    os.environ["OPENAI_API_KEY"] = "none"
    judge_settings = JudgeSettings(**{**settings, **changes})
    return judge_candidates(candidates, folder, judge_settings, noted=folder / "noted.csv")


def test_labels_of_a_local_judge_are_read_and_kept(tmp_path, address):
    # SmolLM2 spells NOT ATTEMPTED in more than eight tokens.
    request = {"temperature": 0, "max_tokens": 16, **ONLY_LABELS}
    labels = judge(tmp_path, address, CANDIDATES, request=request)
    assert {source for _, source in labels} == {"smollm2"}
    names = {label.lower().replace(" ", "_") for label in LABELS}
    assert {label for label, _ in labels} <= names and len(labels) == 12
    assert not (tmp_path / "queue.csv").exists()
    # The address has no server, so all labels are read from the cache.
    assert judge(tmp_path, "http://127.0.0.1:9/v1", CANDIDATES, request=request) == labels


def test_replies_without_a_label_wait_for_a_person(tmp_path, address):
    with pytest.raises(JudgeError, match="5 answers wait for a person"):
        judge(tmp_path, address, CANDIDATES[:5], prompt=TALK)
    with (tmp_path / "queue.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 and {row["reason"] for row in rows} == {"malformed"}
    assert all(row["reply"] for row in rows)
    undecided = judge(tmp_path, address, CANDIDATES[:5], prompt=TALK, undecided="not_attempted")
    assert undecided == [("not_attempted", "queue")] * 5


def test_a_judge_without_any_label_is_stopped(tmp_path, address):
    sums = [candidate_of(f"What is {i} + {i}?", [str(2 * i)], "3") for i in range(20)]
    with pytest.raises(JudgeError, match="None of these replies is kept"):
        judge(tmp_path, address, sums, prompt=TALK)
    assert not (tmp_path / "queue.csv").exists()


def test_a_model_that_the_server_lacks_stops_the_job_with_its_message(tmp_path, address):
    with pytest.raises(JudgeError, match="does not exist"):
        judge(tmp_path, address, CANDIDATES[:1], model="gpt-5.4")
