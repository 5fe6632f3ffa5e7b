"""A paid judge's job, killed again and again: no kept reply is asked for twice."""

import json
import random
import subprocess
import sys
import time

import pytest
from judge_server import KEY, ROOT, FakeJudge, candidates
from soak_budget import count, rounds

from persistcal.judge.run import judge_candidates
from persistcal.store.paid import Ledger

N, AT_ONCE = 40, 2
JOB = f"""
import json, sys
sys.path[:0] = ["{ROOT}", "{ROOT}/tests/helpers"]
from judge_server import KEY, candidates
from persistcal.judge.run import judge_candidates
from persistcal.judge.settings import JudgeSettings
settings = JudgeSettings(**json.loads(sys.argv[1]))
judge_candidates(
    candidates({N}), sys.argv[2], settings, noted=sys.argv[2] + "/noted.csv", api_key=KEY
)
"""


@pytest.mark.soak
def test_a_judge_killed_again_and_again_pays_only_what_was_on_its_way_twice(tmp_path):
    draw = random.Random(17)
    for number in rounds("studies of a killed judge", share=0.25):
        folder = tmp_path / f"judge{number}"
        with FakeJudge() as fake:
            fake.delay_s = 0.02
            settings = fake.settings(concurrency=AT_ONCE)
            kills = 0
            for upto in sorted(draw.sample(range(1, N), 3)):
                job = subprocess.Popen(
                    [sys.executable, "-c", JOB, json.dumps(vars(settings)), str(folder)]
                )
                deadline = time.monotonic() + 60
                while len(fake.times) < upto and time.monotonic() < deadline:
                    assert job.poll() in (None, 0)
                    time.sleep(0.001)
                time.sleep(draw.uniform(0, 0.03))
                kills += job.poll() is None
                job.kill()
                job.wait(30)
            labels = judge_candidates(
                candidates(N), folder, settings, noted=folder / "noted.csv", api_key=KEY
            )
            assert [label for label, _ in labels] == ["correct", "incorrect"] * (N // 2)
            again = fake.asked.total() - N
            assert 0 <= again <= AT_ONCE * kills
            assert Ledger(folder / "spending.csv").total()[0] >= fake.asked.total()
            count("kills of a judge's job", kills)
            count("requests asked again after them", again)
