"""The summary at the end of a run."""

import os
import time

from tools.end_of_run import end_of_run


def test_a_run_ends_with_its_own_jobs_only(tmp_path):
    logs = tmp_path / "logs"
    for path, seconds in {"train/a.tsv": 3.0, "train/b.tsv": 62.0, "old/a.tsv": 9.0}.items():
        (logs / path).parent.mkdir(parents=True, exist_ok=True)
        (logs / path).write_text(f"s\th:m:s\tmax_rss\n{seconds}\t0:00:03\t-\n")
        (logs / path).with_suffix(".log").write_text("")
    (logs / "collect.log").write_text("")
    before = time.time() - 100
    for name in ("a.tsv", "a.log"):
        os.utime(logs / "old" / name, (before, before))
    text = end_of_run(tmp_path, before + 50)
    assert text.splitlines()[0].startswith("3 jobs in 0:5")
    # 3 s + 62 s = 65 s
    assert text.splitlines()[1].split() == ["train", "2", "jobs", "1:05"]
    assert text.splitlines()[2].split() == ["and", "collect", "(1)"]
    assert "old" not in text and "Page" not in text


def test_a_run_that_made_a_page_shows_its_summary_and_where_it_is(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "report").mkdir()
    page = tmp_path / "report/index.html"
    page.write_text("<!doctype html>")
    page.with_name("summary.txt").write_text("Oracle training is above.\n")
    text = end_of_run(tmp_path, time.time() - 10)
    assert text.endswith(f"Oracle training is above.\n\nPage: {page}")
    assert "Oracle" not in end_of_run(tmp_path, time.time() + 10)
