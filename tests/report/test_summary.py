"""The summary at the end of a run."""

import os
import time

from tools.end_of_run import end_of_run


def test_the_end_of_a_run_lists_the_jobs_of_this_run(tmp_path):
    logs = tmp_path / "logs"
    for path, seconds in {"train/a.tsv": 3.0, "train/b.tsv": 62.0, "old/a.tsv": 9.0}.items():
        (logs / path).parent.mkdir(parents=True, exist_ok=True)
        (logs / path).write_text(f"s\th:m:s\tmax_rss\n{seconds}\t0:00:03\t-\n")
        (logs / path).with_suffix(".log").write_text("")
    (logs / "collect.log").write_text("")
    before_start = time.time() - 100
    for name in ("a.tsv", "a.log"):
        os.utime(logs / "old" / name, (before_start, before_start))
    text = end_of_run(tmp_path, before_start + 50)
    assert text.splitlines()[0].startswith("3 jobs in 0:5")
    # 3 s + 62 s = 65 s
    assert text.splitlines()[1].split() == ["train", "2", "jobs", "1:05"]
    assert text.splitlines()[2].split() == ["and", "collect", "(1)"]
    assert "old" not in text and "Page" not in text


def test_the_end_of_a_run_shows_the_summary_and_path_of_a_new_page(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "report").mkdir()
    page = tmp_path / "report/index.html"
    page.write_text("<!doctype html>")
    page.with_name("summary.txt").write_text("Oracle training is above.\n")
    text = end_of_run(tmp_path, time.time() - 10)
    assert text.endswith(f"Oracle training is above.\n\nPage: {page}")
    assert "Oracle" not in end_of_run(tmp_path, time.time() + 10)
