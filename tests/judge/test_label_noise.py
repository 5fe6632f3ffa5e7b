"""The benchmark of a judge's mistakes: claims, and the reading of a study."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from answer_tables import questions_table

from benchmarks import judge_label_noise
from persistcal.store import artifacts


def test_label_noise_creates_flips_only_if_equal_answers_are_judged_twice(monkeypatch):
    """In the benchmark no knowledge changes and mistakes are frequent."""
    monkeypatch.setattr(judge_label_noise, "N_JUDGES", 400)
    answers = [
        candidates_by_checkpoint[:30]
        for candidates_by_checkpoint in judge_label_noise.made_up_answers(drift=False)
    ]

    for rate, together, noise in [(0.3, False, 0), (0.3, True, 0.42), (0, True, 0)]:
        correct, _ = judge_label_noise.judge(answers, rate, together=together)
        # Two independent mistakes: exactly one happens with 2 x 0.3 x 0.7 = 0.42, if the second
        # answers differ and therefore the requests.
        differ = [
            a != b
            for first_set, second_set in combinations(answers, 2)
            for a, b in zip(first_set, second_set, strict=True)
        ]
        share = judge_label_noise.contrast_share(correct)
        assert share == pytest.approx(noise * np.mean(differ), abs=0.01 * bool(noise))

    correct, _ = judge_label_noise.judge(answers, 0.3, together=True)
    is_right = np.array([candidates[0].answer.startswith("right") for candidates in answers[0]])
    assert (correct != is_right[:, None]).mean() == pytest.approx(0.3, abs=0.01)


def test_label_noise_can_be_measured_on_the_answers_of_a_study(tmp_path):
    questions = questions_table(n_train=1, n_test=3)
    questions.loc[3, "excluded"] = True
    (tmp_path / "questions").mkdir()
    artifacts.write(questions, tmp_path / "questions" / "atlas.parquet", artifacts.QUESTIONS)
    for checkpoint, answers in {"a": ["Norway", "Peru"], "b": ["Peru"]}.items():
        rows = [
            (f"q{i}", n, text, 0.4, [text]) for i in range(4) for n, text in enumerate(answers)
        ]
        clusters = pd.DataFrame(rows[::-1], columns=artifacts.CLUSTERS.schema.names)
        path = tmp_path / "clusters" / "atlas" / checkpoint / "atlas.parquet"
        path.parent.mkdir(parents=True)
        artifacts.write(clusters, path, artifacts.CLUSTERS)
    candidates_by_checkpoint = judge_label_noise.answers_of(tmp_path, ["a", "b"])
    texts = [
        [[c.answer for c in candidates] for candidates in first_set]
        for first_set in candidates_by_checkpoint
    ]

    assert texts == [[["Norway", "Peru"]] * 2, [["Peru"]] * 2]
    correct, n_requests = judge_label_noise.judge(candidates_by_checkpoint, 0, together=True)
    assert correct.all(axis=(1, 2)).tolist() == [True, False]
    assert not correct[1].any()
    assert n_requests == 4
    assert judge_label_noise.contrast_share(correct) == 1
