"""A job that asks an API, killed again and again: no kept reply is asked for twice."""

import random
import subprocess
import sys

import pytest
from answer_server import KEY, FakeModel, prompts
from judge_server import ROOT
from soak_budget import count, kill_after, rounds

N, AT_ONCE = 40, 2
JOB = f"""
import json, sys
from pathlib import Path
sys.path[:0] = ["{ROOT}", "{ROOT}/tests/helpers"]
from answer_server import FakeModel, prompts
job = FakeModel(Path(sys.argv[2]), url=sys.argv[1])
job.sample(prompts({N}), api_key="{KEY}", reach={{"concurrency": {AT_ONCE}}})
"""


def kill_and_end(folder, draw, kills):
    """Kill a job `kills` times and let it end; return the number of kills that met a job."""
    with FakeModel(folder) as fake:
        fake.delay_s, killed = 0.02, 0
        for upto in sorted(draw.sample(range(1, N), kills)):
            job = subprocess.Popen([sys.executable, "-c", JOB, fake.url, str(folder)])
            killed += kill_after(job, fake.bodies, upto, draw.uniform(0, 0.03))
        samples = fake.sample(prompts(N))
        assert [s.text.strip()[:5] for [s] in samples] == ["thing"] * N
        assert fake.kept == N
        # a kept reply is never asked for again; each kill loses at most those on their way
        assert max(fake.asked.values()) <= killed + 1
        assert N <= len(fake.bodies) <= N + AT_ONCE * killed
        assert fake.booked >= len(fake.bodies)
    return killed


def test_a_killed_job_asks_again_only_what_was_on_its_way(tmp_path):
    assert kill_and_end(tmp_path, random.Random(5), 2) >= 1


@pytest.mark.soak
def test_a_sampling_job_killed_again_and_again_asks_nothing_twice(tmp_path):
    draw = random.Random(17)
    for number in rounds("studies of a killed sampling job", share=0.1):
        count("kills of a sampling job", kill_and_end(tmp_path / f"api{number}", draw, 3))
