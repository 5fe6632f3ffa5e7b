"""All benchmarks run on tiny sizes and write their results."""

import sys

import pytest
import warm_python

from benchmarks import __main__ as bench
from benchmarks.results import Growth, Result, from_json

EQUAL = Result("a", "b", 2.0, 3.0, 1e-6, 1e-5, 1.5, "How.")


def test_results_survive_json(capsys, monkeypatch):
    results = [EQUAL, Growth("pairs", [1, 10], [1.0, 100.0])]
    monkeypatch.setattr(sys, "argv", ["", "json"])
    bench.from_json.__globals__["show"](lambda quick: results)
    assert [from_json(line) for line in capsys.readouterr().out.splitlines()] == results
    assert results[1].exponent == pytest.approx(2)  # a hundred times for ten times as many


def test_different_results_fail_the_command(tmp_path, monkeypatch):
    results = {"trees": [EQUAL], "decoding": [EQUAL._replace(difference=1e-4)]}
    monkeypatch.setattr(bench, "run", lambda name, quick: results[name])
    command = ["bench", "--to", str(tmp_path), "--only"]
    monkeypatch.setattr(sys, "argv", [*command, "trees"])
    bench.main()
    monkeypatch.setattr(sys, "argv", [*command, "trees", "decoding"])
    with pytest.raises(SystemExit, match="differs by 1e-04"):
        bench.main()
    assert "| a | b | 3.0 | 2 | 1.5 | 1e-04 | How. |" in (tmp_path / "results.md").read_text()


@pytest.mark.slow
def test_every_benchmark_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(bench.subprocess, "run", warm_python.run_words)
    monkeypatch.setattr(sys, "argv", ["bench", "quick", "--to", str(tmp_path)])
    bench.main()
    page = (tmp_path / "results.md").read_text()
    for number in ("questions", "beams", "seeds"):
        assert f"\n| {number} | " in page
    for benchmark in ("decoding", "scoring", "training step", "training", "significance"):
        assert f"\n| {benchmark}" in page
    assert (tmp_path / "results.png").stat().st_size > 1000
