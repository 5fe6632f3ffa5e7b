"""Names of models, checkpoints, estimators, datasets and files change no number."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
from evaluate_estimator import evaluate_estimator
from make_claims import make_claims
from measuring import contrast_members
from synthetic_predictions import CHECKPOINTS, make_predictions

import persistcal
from persistcal.api.evaluate import compare_inputs
from persistcal.readers.inputs import make_settings
from persistcal.readers.reading import Reading
from persistcal.readers.study import read_study

SETTINGS = {"min_contrast": 5, "n_replicates": 200}
NEW = {"m": "z", "quiz": "trivia", "a": "1st", "b": "0th", "c": "x"}
NEW |= {"own": "zz", "coarse": "y", "learnt": "a1", "end_correct": "b1"}
FROM_ZERO = {17: 0, 18: 1, 19: 2}  # seeds of training
LISTS = {"significance": "block", "min_contrast": "kept"}  # columns of several names


def numbers_of(compared, names):
    """Return the rows of all tables, sorted, with the first names."""
    first = {new: old for old, new in names.items()}
    first |= {str(new): str(old) for old, new in FROM_ZERO.items()}
    made = {}
    for name, table in compared.tables.items():
        table = table.drop(columns=LISTS.get(name, []))
        if "seed" in table:
            numbers = table["seed"].astype("string")
            is_trained = table["estimator"] == names.get("learnt")
            table["seed"] = numbers.mask(is_trained, numbers.map(first).fillna(numbers))
        texts = table.select_dtypes(exclude="number").columns
        table[texts] = table[texts].map(lambda text: first.get(text, text))
        made[name] = table.sort_values([*texts, *table.columns.drop(texts)], ignore_index=True)
    return made


def assert_same(made, expected):
    assert made.keys() == expected.keys()
    for name, table in made.items():
        pd.testing.assert_frame_equal(table, expected[name], rtol=1e-9, obj=name)


def test_a_frame_with_other_names_and_another_order_has_the_same_numbers():
    rows = make_predictions(60).assign(model="m", dataset="quiz", train_dataset="quiz")
    renamed = rows.sample(frac=1, random_state=0).replace(NEW).replace({"seed": FROM_ZERO})
    states = [NEW[name] for name in CHECKPOINTS]
    usual = persistcal.compare(rows, CHECKPOINTS, **SETTINGS)
    changed = persistcal.compare(renamed, states, **SETTINGS)
    assert_same(numbers_of(changed, NEW), numbers_of(usual, {}))


def test_a_study_with_other_names_and_order_has_the_same_numbers():
    rows = make_predictions(60).query("estimator in ['own', 'coarse']")
    rows = rows.assign(model="m", dataset="quiz", train_dataset="quiz")
    renamed, found = rows.sample(frac=1, random_state=0).replace(NEW), []
    settings = make_settings(**SETTINGS)
    for table, names in ((rows, {}), (renamed, NEW)):
        states = [names.get(name, name) for name in CHECKPOINTS]
        place = {name: table[name].iloc[0] for name in ("model", "dataset")}
        sets = contrast_members(table, states, settings).assign(**place)
        jobs = [
            evaluate_estimator(part, sets, checkpoints=states, settings=settings)
            for _, part in table.groupby("estimator")
        ]
        made = {
            name: pd.concat([getattr(job, name) for job in jobs]).assign(**place)
            for name in ("metrics", "intervals", "replicates")
        }
        by_name = {"checkpoints": {place["model"]: states}, "determinism": ""}
        claimed = make_claims(
            table, sets, made["replicates"], settings={place["dataset"]: settings}, **by_name
        )
        tables = {**made, **claimed._asdict()}
        del tables["replicates"]  # which lead to the claims
        found.append(numbers_of(SimpleNamespace(tables=tables), names))
    assert len(found[0]["claims"]) and found[0]["claims"]["word"].ne("").any()
    assert_same(*found)


def test_samples_with_other_names_and_order_have_the_same_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, tables, compared = np.random.default_rng(1), [], []
    ids = np.repeat([f"q{k}" for k in rng.permutation(50)], 4)
    for version in ("a", "b"):
        rows = {"question_id": ids, "question": ids, "references": "yes", "model": "m"}
        rows |= {"answer": rng.choice(["yes", "no", "or"], 200), "checkpoint": version}
        tables.append(pd.DataFrame(rows).assign(dataset="quiz"))
    for names, files in (({}, ["one.csv", "two.csv"]), (NEW, ["z.csv", "a.csv"])):
        for file, table in zip(files, tables, strict=True):
            order = table.sort_values("question_id", kind="stable") if names else table
            order.replace(names).to_csv(file, index=False)
        inputs = read_study(files, Reading(beams=False))
        compared.append(numbers_of(compare_inputs(inputs, make_settings(**SETTINGS)), names))
    assert_same(*compared)
