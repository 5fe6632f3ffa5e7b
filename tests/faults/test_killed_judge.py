"""A paid judge's job, killed again and again: no kept reply is asked for twice."""

import random

import pytest
from judge_server import KEY, FakeJudge, candidates, start_job
from soak_budget import count, kill_after, rounds

from persistcal.judge.run import judge_candidates
from persistcal.store.replies import Ledger

N, AT_ONCE = 40, 2


@pytest.mark.soak
def test_a_judge_killed_again_and_again_pays_only_what_was_on_its_way_twice(
    tmp_path, monkeypatch
):
    draw = random.Random(17)
    for number in rounds("studies of a killed judge", share=0.25):
        folder = tmp_path / f"judge{number}"
        with FakeJudge() as fake:
            fake.delay_s = 0.02
            settings = fake.settings(concurrency=AT_ONCE)
            kills = 0
            for upto in sorted(draw.sample(range(1, N), 3)):
                job = start_job(settings, folder, N)
                kills += kill_after(job, fake.times, upto, draw.uniform(0, 0.03))
            monkeypatch.setenv(settings.api_key_env, KEY)
            labels = judge_candidates(
                candidates(N), folder, settings, noted=folder / "noted.csv"
            )
            assert [label for label, _ in labels] == ["correct", "incorrect"] * (N // 2)
            n_repeated = fake.asked.total() - N
            assert 0 <= n_repeated <= AT_ONCE * kills
            assert Ledger(folder / "spending.csv").total()[0] >= fake.asked.total()
            count("kills of a judge's job", kills)
            count("requests asked again after them", n_repeated)
