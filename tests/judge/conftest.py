"""A judge's server, and the folder in which its jobs keep what they know."""

import pytest
from judge_server import FakeJudge


@pytest.fixture
def fake(tmp_path):
    with FakeJudge(tmp_path) as judge:
        yield judge
