"""The summary at the end of a run."""

import time

from study.record import read_summary


def test_the_end_of_a_run_shows_the_summary_and_path_of_a_new_page(tmp_path):
    (tmp_path / "report").mkdir()
    page = tmp_path / "report/index.html"
    page.write_text("<!doctype html>")
    page.with_name("summary.txt").write_text("Oracle training is above.\n")
    text = read_summary(tmp_path, time.time() - 10)
    assert text == f"\nOracle training is above.\n\nPage: {page}\n"
    assert read_summary(tmp_path, time.time() + 10) == ""
