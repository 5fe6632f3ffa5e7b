"""How many questions enter contrast sets by a judge's mistakes alone, asked in either way.

A server labels answers and is wrong at random, independently in each request. It judges
the answers of four checkpoints to made-up questions one by one (a request per distinct
question and answer) and together (a request per question and checkpoint). The checkpoints
either know what they know (each gives the first one's predictions, and other second
answers) or drift as atlas' do. Printed is the mean size of a pair's contrast set, in
percent of the questions. Run `python -m benchmarks.judge_label_noise` in the root of the
repository.
"""

import contextlib
import hashlib
import itertools
import json
import re
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

from persistcal.judge.labels import CORRECT
from persistcal.judge.prompt import Candidate, candidate_of
from persistcal.judge.run import judge_candidates
from persistcal.judge.settings import JudgeSettings

N_QUESTIONS, N_CHECKPOINTS, ERROR_RATES = 400, 4, (0.0, 0.01, 0.02, 0.05)
KNOWN, GAINED_OR_LOST, OTHER_MISTAKE = 0.5, 0.15, 0.5  # shares, the last two a checkpoint
PROMPTS = Path("config/prompts")
PAIRS = list(itertools.combinations(range(N_CHECKPOINTS), 2))


class ErringJudge(BaseHTTPRequestHandler):
    """Finds right what begins with "right", but for mistakes drawn by the request's text."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Label the answers of one request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        user, rate = body["messages"][-1]["content"], float(body["model"])
        listed = re.findall(r"^\d+\. (.*)$", user, re.MULTILINE)
        answers = listed or re.findall(r"^Candidate answer: (.*)$", user, re.MULTILINE)
        seed = hashlib.sha256(user.encode()).digest()
        wrong = np.random.default_rng(list(seed)).random(len(answers)) < rate
        labels = [
            "CORRECT" if answer.startswith("right") != mistaken else "INCORRECT"
            for answer, mistaken in zip(answers, wrong, strict=True)
        ]
        choice = {"message": {"content": "\n".join(labels)}, "finish_reason": "stop"}
        content = json.dumps({"choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def made_up_answers(*, drift: bool) -> list[list[tuple[str, str]]]:
    """Return the two judged answers of each checkpoint to each question."""
    rng = np.random.default_rng(17)
    known = rng.random(N_QUESTIONS) < KNOWN
    mistake = rng.integers(0, 8, N_QUESTIONS)
    checkpoints = []
    for checkpoint in range(N_CHECKPOINTS):
        if checkpoint and drift:
            known = known ^ (rng.random(N_QUESTIONS) < GAINED_OR_LOST)
            other = rng.random(N_QUESTIONS) < OTHER_MISTAKE
            mistake = np.where(other, rng.integers(0, 8, N_QUESTIONS), mistake)
        second = rng.integers(8, 16, N_QUESTIONS)
        top = [f"right {i}" if known[i] else f"wrong {mistake[i]}" for i in range(N_QUESTIONS)]
        checkpoints.append(
            [(one, f"wrong {two}") for one, two in zip(top, second, strict=True)]
        )
    return checkpoints


def candidates(answers: list[tuple[str, str]]) -> list[Candidate]:
    """Return what is judged of one checkpoint."""
    return [
        candidate_of(f"Question {i}?", [f"right {i}"], answer)
        for i, both in enumerate(answers)
        for answer in both
    ]


def judge(
    checkpoints: list[list[tuple[str, str]]], address: str, rate: float, *, together: bool
) -> np.ndarray:
    """Return whether each checkpoint's predictions are labelled correct."""
    name = "judge_together.txt" if together else "judge.txt"
    settings = JudgeSettings(
        backend="openai",
        model=str(rate),
        prompt=(PROMPTS / name).read_text(encoding="utf-8"),
        base_url=address,
        max_requests=10**6,
        max_cost=0,
        price_input=0,
        price_output=0,
        together=together,
    )
    with tempfile.TemporaryDirectory() as folder:
        labels = [
            judge_candidates(
                candidates(answers), folder, settings, noted=f"{folder}/{i}.csv", api_key="none"
            )
            for i, answers in enumerate(checkpoints)
        ]
    return np.array([[label == CORRECT for label, _ in row[::2]] for row in labels])


def contrast_share(correct: np.ndarray) -> float:
    """Return the mean share of questions in a pair's contrast set."""
    return float(np.mean([correct[i] != correct[j] for i, j in PAIRS]))


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Let the judge serve, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), ErringJudge)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def report(address: str) -> None:
    """Print contrast sets under each rate of mistakes, asked in either way."""
    for drift in (False, True):
        checkpoints = made_up_answers(drift=drift)
        print(f"knowledge {'drifts' if drift else 'stays'}: contrast set, % of questions")
        print("mistakes  one by one  together  labels that differ")
        for rate in ERROR_RATES:
            single = judge(checkpoints, address, rate, together=False)
            joint = judge(checkpoints, address, rate, together=True)
            print(
                f"{rate:8.0%}  {contrast_share(single):10.1%}  {contrast_share(joint):8.1%}"
                f"  {np.mean(single != joint):18.1%}"
            )


if __name__ == "__main__":
    with serving() as address:
        report(address)
