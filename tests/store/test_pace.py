"""Lines about how far a job is."""

import logging

from persistcal.store import pace


def lines_of(caplog, monkeypatch, *, seconds_a_step, n):
    """Return what is logged over `n` steps, by a clock that each step moves on."""
    now = [0.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    with caplog.at_level(logging.INFO):
        for _ in pace.Pace(range(n), "training", unit=" steps"):
            now[0] += seconds_a_step
    return [record.getMessage() for record in caplog.records]


def test_a_line_every_ten_seconds_with_rate_and_time_left(caplog, monkeypatch):
    lines = lines_of(caplog, monkeypatch, seconds_a_step=2.0, n=20)
    # half a step a second: 5 are done after 10 s, and 15 are left for 30 s
    assert lines == [
        "training: 5 of 20 (25 %), 0.50 steps/s, 00:30 left",
        "training: 10 of 20 (50 %), 0.50 steps/s, 00:20 left",
        "training: 15 of 20 (75 %), 0.50 steps/s, 00:10 left",
        "training: 20 of 20 (100 %), 0.50 steps/s, 00:00 left",
    ]


def test_a_quick_job_says_nothing(caplog, monkeypatch):
    assert lines_of(caplog, monkeypatch, seconds_a_step=0.01, n=20) == []
