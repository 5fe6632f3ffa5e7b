"""Real updates: an obvious recomputation on a made-up file of the same shape."""

import numpy as np
import pandas as pd
import pytest

from reproduce import real_updates

LINES = {"Made": {"1": "made-1", "2": "made-2"}}
MODELS = ("maker/made-1@2025", "maker/made-2@default")


@pytest.fixture
def published_file(tmp_path):
    """Answers of two versions to 120 and 110 questions, with the columns of the dataset."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "model": model,
            "item_id": item,
            "is_correct": bool(rng.random() < accuracy),
            "confidence": int(rng.choice([60, 85, 90, 95, 100])),
        }
        for model, items, accuracy in zip(
            MODELS, (range(120), range(10, 120)), (0.6, 0.8), strict=True
        )
        for item in items
    ]
    path = tmp_path / "verbalised.csv.gz"
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def test_counts_and_change_auc_of_an_update_equal_an_obvious_recomputation(published_file):
    answers = real_updates.read_answers(published_file)
    [update] = real_updates.find_updates(answers, LINES)

    values = real_updates.measure(update, n_replicates=200).values

    table = pd.read_csv(published_file)
    by_model = {
        model: {row.item_id: row for row in table[table["model"] == model].itertuples()}
        for model in MODELS
    }
    earlier, later = by_model.values()
    shared = sorted(set(earlier) & set(later))
    gained = [i for i in shared if later[i].is_correct and not earlier[i].is_correct]
    lost = [i for i in shared if earlier[i].is_correct and not later[i].is_correct]
    change = {i: later[i].confidence - earlier[i].confidence for i in shared}
    wins = sum(
        1.0 if change[g] > change[ls] else 0.5 if change[g] == change[ls] else 0.0
        for g in gained
        for ls in lost
    )
    assert values["questions"] == len(shared) == 110
    assert (values["gained"], values["lost"]) == (len(gained), len(lost))
    assert values["change_auc"] == pytest.approx(wins / len(gained) / len(lost), abs=1e-12)
    unrelated = real_updates.of_unrelated_models(answers.assign(vendor=answers["checkpoint"]))
    assert unrelated["pairs"] == 1
    for name in ("change_auc", "moved", "moved_gained", "moved_lost"):
        assert unrelated[name] == pytest.approx(values[name], abs=1e-9)
    mean = np.mean([earlier[i].confidence for i in lost]) / 100
    assert values["earlier.confidence_in_lost"] == pytest.approx(mean)
    assert values["later.accuracy"] == pytest.approx(
        np.mean([later[i].is_correct for i in shared])
    )


def test_a_version_without_answers_is_named():
    answers = pd.DataFrame({"checkpoint": ["made-1"], "question_id": ["1"], "vendor": ["m"]})
    with pytest.raises(SystemExit, match="Made 1 → 2"):
        real_updates.find_updates(answers, LINES)


def test_the_random_effects_mean_has_hartung_and_knapps_interval():
    # Q(τ²) = (.1² + .1²) / (.01 + τ²) = k − 1 = 1, so τ² = .01; both weights are 1 / .02 = 50.
    # The variance of the mean is Σ w (y − ȳ)² / ((k − 1) Σ w) = 50 · .02 / 100 = .01, and
    # Student's quantile with one degree of freedom is 12.7062: .3 ± 12.7062 · .1.
    mean, low, high = real_updates.random_effects_mean([0.2, 0.4], [0.01, 0.01])
    assert (mean, low, high) == pytest.approx((0.3, 0.3 - 1.27062, 0.3 + 1.27062), abs=1e-4)


def test_the_tables_of_the_page_are_those_of_the_results():
    page = real_updates.PAGE.read_text(encoding="utf-8")
    assert real_updates.write_tables(pd.read_csv(real_updates.DATA), page) == page


def test_pages_state_the_measured_means_and_what_flips_alone_could_give():
    results = real_updates.ResultsOfUpdates(pd.read_csv(real_updates.DATA))
    readme = (real_updates.ROOT / "README.md").read_text(encoding="utf-8")
    page = real_updates.PAGE.read_text(encoding="utf-8")
    for text in (" ".join(readme.split()), " ".join(page.split())):
        for name in ("knew", "moved", "knows"):
            low, high = (real_updates.number(end, 2) for end in results.ends("mean", name))
            assert f"{real_updates.number(results('mean', name), 2)} [{low}, {high}]" in text
        assert f"{real_updates.number(results('mean', 'change_auc'), 2)}" in text
        assert f"have {real_updates.number(results('unrelated', 'change_auc'), 2)}" in text
    flips = real_updates.number(results("flips_alone", "change_auc"), 2)
    assert f"flips make a mean change AUC of {flips}" in " ".join(page.split())
    assert results("flips_alone", "change_auc") >= results("mean", "change_auc")


def test_of_the_tuned_models_only_the_one_on_its_own_confidences_passes_all_tests():
    results = real_updates.ResultsOfUpdates(pd.read_csv(real_updates.DATA))
    tuned, shuffled = real_updates.TRIPLE
    assert results.word(tuned) == "moved with the labels"
    assert results.word(shuffled) == "lost its knowledge"
    assert results.ends(shuffled, "change_auc")[0] > 0.5
