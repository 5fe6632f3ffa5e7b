"""A fake judge: a server, and a folder for the jobs."""

import pytest
from judge_server import FakeJudge


@pytest.fixture
def fake(tmp_path):
    with FakeJudge(tmp_path) as judge:
        yield judge
