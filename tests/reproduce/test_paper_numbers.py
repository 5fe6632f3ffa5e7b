"""Other printed numbers of the paper, next to the numbers of a study."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from persistcal.store import artifacts
from persistcal.store.tables import TableFiles
from reproduce.paper_numbers import Names, compare_numbers, measured_numbers, printed_numbers

FILES = ["contrast_set_sizes", "checkpoints", "hidden_state_variance", "transfer"]
FILES += ["weight_similarity"]
CONFIG = yaml.safe_load(Path("config/config.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def printed():
    files = (TableFiles.read(f"resources/paper/{name}.csv") for name in FILES)
    return printed_numbers({file.name: file.rows() for file in files})


@pytest.fixture(scope="module")
def names():
    models = {key: entry["label"] for key, entry in CONFIG["models"].items()}
    checkpoints = {
        key: {name: checkpoint["label"] for name, checkpoint in entry["checkpoints"].items()}
        for key, entry in CONFIG["models"].items()
    }
    datasets = {key: entry["label"] for key, entry in CONFIG["datasets"].items()}
    return Names(models, datasets, checkpoints)


def compared(printed, names, *frames):
    comparison = compare_numbers(printed, measured_numbers(frames, names))
    artifacts.check(comparison, artifacts.PAPER_NUMBERS, "here")
    return {tuple(row[:4]): tuple(row[4:]) for row in comparison.itertuples(index=False)}


def test_every_printed_number_is_listed_once(printed):
    assert not printed.duplicated(["quantity", "model", "dataset", "item"]).any()
    # Sizes and improvements of 90 pairs, accuracies of 20 checkpoints on 3 datasets, two
    # correlations of 32 layers, 4 transfer AUCs, 1 cosine
    assert len(printed) == 90 * 2 + 60 + 64 + 4 + 1
    assert printed["paper"].notna().all()


def test_checkpoints_of_the_paper_have_the_display_names_of_the_config(printed, names):
    accuracies = printed[printed["quantity"] == "accuracy (%)"]
    for model, label in names.models.items():
        if model != "qwen3-8b":
            items = set(accuracies.loc[accuracies["model"] == label, "item"])
            assert items == set(names.checkpoints[model].values())


def test_sizes_and_accuracies_are_compared_by_display_names(printed, names):
    sets = pd.DataFrame(
        [("olmo3-7b", "triviaqa", "step566000", "step707000", 640, 354)],
        columns=["model", "dataset", "earlier", "later", "size", "improvement"],
    )
    accuracies = pd.DataFrame(
        [
            ("marin-8b", "jeopardy", "phoenix", "test", 0.8044),
            ("marin-8b", "jeopardy", "kestrel", "train", 0.5),
            ("other", "jeopardy", "phoenix", "test", 0.5),
        ],
        columns=["model", "dataset", "checkpoint", "split", "accuracy"],
    )
    assert compared(printed, names, sets, accuracies) == {
        ("contrast set", "Olmo 3 7B", "TriviaQA", "40% → 50%"): (640, 642, -2, False),
        ("improvements", "Olmo 3 7B", "TriviaQA", "40% → 50%"): (354, 354, 0, True),
        # 80.44 is printed as 80.4
        ("accuracy (%)", "Marin 8B", "Jeopardy", "phoenix"): (
            pytest.approx(80.44),
            80.4,
            pytest.approx(0.04),
            True,
        ),
    }


def test_numbers_of_analyses_are_compared_with_the_paper(printed, names):
    place = {"model": ["olmo3-7b"], "dataset": ["triviaqa"]}
    variance = pd.DataFrame({**place, "layer": [3], "mean_rho": [0.6], "median_rho": [0.7504]})
    transfer = pd.DataFrame(
        {
            **{key: value * 2 for key, value in place.items()},
            "recipe": ["transfer", "transfer_random"],
            "trained_on": ["step141000", "step141000"],
            "checkpoint": ["step1413814", "step1413814"],
            "auc": [0.8704, 0.5],
        }
    )
    weights = pd.DataFrame(
        {
            "model": ["olmo3-7b"],
            "earlier": ["step141000"],
            "later": ["step1413814"],
            "cosine": [0.38],
        }
    )
    comparison = compared(printed, names, variance, transfer, weights)
    same = {place: row[-1] for place, row in comparison.items()}
    olmo = ("Olmo 3 7B", "TriviaQA")
    assert same == {
        ("mean ρ by layer", *olmo, "3"): False,  # .631
        ("median ρ by layer", *olmo, "3"): True,  # .750
        ("transfer AUC", *olmo, "10% → 100%"): True,  # .870
        ("cosine of weights", "Olmo 3 7B", "", "10% → 100%"): False,  # .37
    }


def test_a_table_without_printed_numbers_is_refused(names):
    with pytest.raises(ValueError, match="columns model, count"):
        measured_numbers([pd.DataFrame({"model": ["m"], "count": [1]})], names)
