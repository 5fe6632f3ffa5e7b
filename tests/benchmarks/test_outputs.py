"""docs/validation.md has the numbers of the simulations in benchmarks/outputs.

`tests/workflow/test_docs.py` compares the page with docs/data/validation.csv.
"""

from pathlib import Path

import pandas as pd
from scipy.stats import binom

from tools import docs_numbers

ROOT = Path(__file__).parents[2]


def read(name):
    return pd.read_csv(ROOT / "benchmarks" / "outputs" / f"{name}.csv")


def test_the_copied_numbers_equal_the_simulated_numbers(tmp_path):
    docs_numbers.export("validation", tmp_path)
    copied = docs_numbers.DATA / "validation.csv"
    assert copied.read_text("utf-8") == (tmp_path / "validation.csv").read_text("utf-8")


def test_sentences_have_the_simulated_numbers():
    transforms = read("transforms")
    assert not transforms["other_verdict"].any()
    tried = read("smooth_ece")[["percentile", "basic", "percentile_minus_floor"]]
    assert not (tried.min() >= 90).any()
    assert set(read("few_labels").query("planned == 'yes'")["allowed"]) == {10}
    few_lost = 100 * binom.cdf(4, 2000, 5 / 2000)
    text = " ".join((ROOT / "docs" / "validation.md").read_text(encoding="utf-8").split())
    assert f"change no verdict in {400 * len(transforms):,} studies" in text
    assert f"in {few_lost:.0f} % of the studies fewer than five are lost" in text
