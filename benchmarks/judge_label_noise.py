"""Size of contrast sets that come only from a judge's mistakes, for each way of asking.

The judge compares answers with references and makes random mistakes, independently in each
request. It labels the answers of four checkpoints one by one (a request per distinct question
and answer) or together (a request per question and checkpoint), the two most probable
candidates or all. The checkpoints have constant knowledge (the first one's predictions with
other second answers), or drift, or are the checkpoints of atlas. The output is the mean size of
a pair's contrast set, in percent of the questions. Run in the root of the repository, the
second command after `make demo`:

    python -m benchmarks.judge_label_noise
    python -m benchmarks.judge_label_noise results/atlas
"""

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from persistcal.judge.messages import Candidate, JudgeSettings, candidate_of, requests_about
from persistcal.questions.labels import CORRECT, judge_lexically
from persistcal.store import artifacts

N_QUESTIONS, N_CHECKPOINTS, ERROR_RATES = 400, 4, (0.0, 0.01, 0.02, 0.05)
N_JUDGES = 20  # with independent mistakes; results are means over judges
KNOWN, GAINED_OR_LOST, OTHER_MISTAKE = 0.5, 0.15, 0.5  # shares, the last two a checkpoint
PROMPTS = Path("config/prompts")
MODEL, CHECKPOINTS = "atlas", ("p40", "p50", "p90", "p100")
NEEDED, ALL = 2, None  # candidates of a question
WAYS = {"one by one": (False, NEEDED), "together": (True, NEEDED), "all together": (True, ALL)}

Answered = list[list[Candidate]]  # candidates of a checkpoint, by question and rank


def made_up_answers(*, drift: bool) -> list[Answered]:
    """Return the two judged answers of each checkpoint to each question."""
    rng = np.random.default_rng(17)
    is_known = rng.random(N_QUESTIONS) < KNOWN
    mistake = rng.integers(0, 8, N_QUESTIONS)
    checkpoints = []
    for checkpoint in range(N_CHECKPOINTS):
        if checkpoint and drift:
            is_known = is_known ^ (rng.random(N_QUESTIONS) < GAINED_OR_LOST)
            is_other_mistake = rng.random(N_QUESTIONS) < OTHER_MISTAKE
            mistake = np.where(is_other_mistake, rng.integers(0, 8, N_QUESTIONS), mistake)
        second = rng.integers(8, 16, N_QUESTIONS)
        top = [
            f"right {i}" if is_known[i] else f"wrong {mistake[i]}" for i in range(N_QUESTIONS)
        ]
        checkpoints.append(
            [
                [candidate_of(f"Question {i}?", [f"right {i}"], text) for text in texts]
                for i, texts in enumerate(zip(top, (f"wrong {n}" for n in second), strict=True))
            ]
        )
    return checkpoints


def answers_of(results: Path, checkpoints: Sequence[str] = CHECKPOINTS) -> list[Answered]:
    """Return atlas' candidates to the test questions that all `checkpoints` answer."""
    dataset = f"{MODEL}.parquet"  # dataset and model have the same name
    table = artifacts.read(results / "questions" / dataset, artifacts.QUESTIONS)
    questions = table[(table["split"] == "test") & ~table["excluded"]].set_index("question_id")
    answered = []
    for checkpoint in checkpoints:
        path = results / "clusters" / MODEL / checkpoint / dataset
        clusters = artifacts.read(path, artifacts.CLUSTERS).sort_values("cluster")
        groups = clusters.groupby("question_id")["answer"].agg(list)
        answered.append(groups[groups.index.isin(questions.index)])
    common = sorted(set.intersection(*(set(groups.index) for groups in answered)))
    labelled = list(
        zip(
            common,
            *(questions.loc[common, ["question", "references"]].T.to_numpy()),
            strict=True,
        )
    )
    return [
        [
            [candidate_of(text, right, answer) for answer in groups[i]]
            for i, text, right in labelled
        ]
        for groups in answered
    ]


def judge(
    checkpoints: list[Answered], rate: float, *, together: bool, most: int | None = None
) -> tuple[np.ndarray, int]:
    """Return whether each judge calls each checkpoint's predictions right, and the requests.

    A mistake depends on the whole request: the same one has the same mistakes.
    """
    name = "judge_together.txt" if together else "judge.txt"
    prompt = (PROMPTS / name).read_text(encoding="utf-8")
    free = {"price_input": 0, "price_output": 0, "max_requests": 0, "max_cost": 0}
    settings = JudgeSettings("openai", "judge", prompt, "", together=together, **free)
    rows, requests = [], set()
    for questions in checkpoints:
        distinct = dict.fromkeys(c for candidates in questions for c in candidates[:most])
        labels: dict[Candidate, np.ndarray] = {}
        for key, (_, group) in requests_about(distinct, settings).items():
            requests.add(key)
            drawn = np.random.default_rng(list(key.encode()))
            wrong = drawn.random((len(group), N_JUDGES)) < rate
            for c, mistaken in zip(group, wrong, strict=True):
                labels[c] = (judge_lexically(c.answer, c.references) == CORRECT) != mistaken
        rows.append([labels[candidates[0]] for candidates in questions])
    return np.array(rows), len(requests)


def contrast_share(correct: np.ndarray) -> float:
    """Return the mean share of questions in a pair's contrast set."""
    pairs = itertools.combinations(correct, 2)
    return float(np.mean([first != is_other_mistake for first, is_other_mistake in pairs]))


def report(title: str, checkpoints: list[Answered]) -> None:
    """Print contrast sets under each rate of mistakes, asked in each way."""
    print(f"{title}: contrast set, % of {len(checkpoints[0])} questions")
    print("mistakes", *WAYS, sep="  ")
    for rate in ERROR_RATES:
        judged = [
            judge(checkpoints, rate, together=together, most=most)
            for together, most in WAYS.values()
        ]
        shares = (
            f"{contrast_share(correct):{len(way)}.1%}"
            for way, (correct, _) in zip(WAYS, judged, strict=True)
        )
        print(f"{rate:8.0%}", *shares, sep="  ")
    print(
        "requests",
        *(f"{n:{len(way)},}" for way, (_, n) in zip(WAYS, judged, strict=True)),
        sep="  ",
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        report(f"atlas in {sys.argv[1]}", answers_of(Path(sys.argv[1])))
    else:
        report("knowledge stays", made_up_answers(drift=False))
        report("knowledge drifts", made_up_answers(drift=True))
