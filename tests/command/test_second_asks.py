"""`persistcal compare` with a second ask, greedy answers or groups of questions."""

import io
import re

import numpy as np
import pandas as pd
import pytest
from command_line import run

import persistcal
from benchmarks.asked_again import CHANGED, ask_twice
from benchmarks.knew_moved_knows import StateWorld, draw_answers
from persistcal.readers.reading import Reading
from persistcal.readers.study import read_study


@pytest.fixture
def asks(tmp_path, monkeypatch):
    """Write predictions of two versions, asked twice: v1a.csv, v2a.csv, v1b.csv, v2b.csv."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for ask in "ab":
        for version in ("v1", "v2"):
            rows = {"question_id": np.arange(80), "confidence": rng.random(80).round(3)}
            rows |= {"correct": rng.integers(0, 2, 80), "checkpoint": version}
            pd.DataFrame(rows).to_csv(f"{version}{ask}.csv", index=False)
    return tmp_path


def test_a_second_ask_gives_crossed_claims_and_changes_no_other_table(asks):
    fast = ("--replicates", 200, "--min-contrast", 5)
    assert run("compare", "v1a.csv", "v2a.csv", *fast, "--out", "one") == 0
    files = ("v1a.csv", "v2a.csv", "--again", "v1b.csv", "v2b.csv")
    assert run("compare", *files, *fast, "--out", "two") == 0
    for table in ("metrics", "intervals", "significance", "contrast_sets", "states"):
        assert (asks / f"one/{table}.csv").read_bytes() == (
            asks / f"two/{table}.csv"
        ).read_bytes()
    claims = pd.read_csv("two/claims.csv")
    assert set(claims.loc[claims["basis"].notna(), "asks"]) == {"cross"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--again v1a.csv v2b.csv", "v1a.csv: is a copy of v1a.csv; ask the same"),
        ("--again v1b.csv v2b.csv v2s.csv", "gives 3 files for 2"),
        ("--again v1s.csv v2s.csv", "'confidence' has the seed 0 in one of the two asks only"),
        ("--again - -", "-: standard input is given twice"),
        ("--again other.csv v2b.csv", "the two asks have other questions"),
        ("--again v2b.csv v1b.csv", "in the same order and with the same names"),
        ("--again v1b.csv v2b.csv --greedy", "--greedy has no meaning"),
        ("--again v1b.csv v2c.csv", "two asks of checkpoint 'v2' are copies"),
        ("both.csv --again v1b.csv", "two asks in its column ask, and --again gives another"),
    ],
)
def test_files_that_are_no_second_ask_are_refused_before_writing(words, message, asks, capsys):
    shifted = pd.read_csv("v1b.csv").assign(question_id=lambda rows: rows["question_id"] + 1)
    shifted.to_csv("other.csv", index=False)
    for version in ("v1", "v2"):
        pd.read_csv(f"{version}b.csv").assign(seed=1).to_csv(f"{version}s.csv", index=False)
    pd.read_csv("v2a.csv")[::-1].to_csv("v2c.csv", index=False)
    names = [(version, ask) for version in ("v1", "v2") for ask in "ab"]
    parts = [pd.read_csv(f"{v}{ask}.csv").assign(ask="ab".index(ask)) for v, ask in names]
    pd.concat(parts).to_csv("both.csv", index=False)
    files = ["v1a.csv", "v2a.csv"] * words.startswith("--")
    assert run("compare", *files, *words.split()) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (asks / "comparison").exists()


def test_a_file_of_the_second_ask_can_come_from_standard_input(asks, monkeypatch, capsys):
    given = io.TextIOWrapper(io.BytesIO((asks / "v2b.csv").read_bytes()))
    monkeypatch.setattr("sys.stdin", given)
    assert run("metrics", "v1a.csv", "v2a.csv", "--again", "v1b.csv", "-") == 0
    from_input = capsys.readouterr().out
    assert run("metrics", "v1a.csv", "v2a.csv", "--again", "v1b.csv", "v2b.csv") == 0
    assert from_input == capsys.readouterr().out


FEW = "needs 5 questions, in different groups, of each kind in each pair"
UNCLEAR = {  # a change of rows, and the sentence
    "four lost": (lambda r: r[~r["question_id"].isin(range(24, 80, 6))], FEW),
    "nothing wrong later": (
        lambda r: r.assign(correct=r["correct"].where(r["checkpoint"] == "v1", 1)),
        "are improvements (first: ",
    ),
    "three groups of all kinds": (lambda r: r.assign(group=r["question_id"] // 30), FEW),
    "a confidence in one ask only": (
        lambda r: r.assign(confidence=r["confidence"].where(r.index != 200)),
        "row 201",
    ),
    "a question in one ask only": (lambda r: r.drop(index=[160, 240]), "have other questions"),
    "one group": (lambda r: r.assign(group="x"), "all questions have the group 'x'"),
    "no group": (lambda r: r.assign(group=["x", ""] * 160), "group is empty in 80"),
}


@pytest.mark.parametrize("door", ["command", "notebook"])
@pytest.mark.parametrize("name", UNCLEAR)
def test_unclear_predictions_have_one_sentence_and_no_word(name, door, asks, capsys, caplog):
    """A third of the labels change; 14 are gained and 13 lost."""
    change, sentence = UNCLEAR[name]
    question, rng = np.tile(np.arange(80), 4), np.random.default_rng(0)
    rows = pd.DataFrame(
        {"question_id": question, "checkpoint": np.repeat(["v1", "v2"] * 2, 80)}
    )
    flips = (question % 3 == 0) & (rows["checkpoint"] == "v2")
    rows = rows.assign(correct=(question + flips) % 2, confidence=rng.random(320).round(3))
    rows = change(rows.assign(ask=np.repeat([1, 2], 160)))
    rows = rows if "in one ask" in name else rows[rows["ask"] == 1].drop(columns="ask")
    is_refused, text = sentence not in (FEW, "are improvements (first: "), ""
    if door == "command":
        rows.to_csv("rows.csv", index=False)
        words = ("--replicates", 200, "--min-contrast", 5, "--verbose")
        assert run("compare", "rows.csv", *words) == int(is_refused)
    elif is_refused:
        with pytest.raises(ValueError, match=re.escape(sentence[-20:])) as error:
            persistcal.compare(rows, n_replicates=200, min_contrast=5)
        text = str(error.value)
    else:
        compared = persistcal.compare(rows, n_replicates=200, min_contrast=5)
        text = compared.verdict() + compared.summary()
    printed = capsys.readouterr()
    text = " ".join((text + printed.out + printed.err + caplog.text).split())
    assert sentence in text
    assert is_refused or "confidence ? too few changed questions" in text


def test_answers_bring_the_groups_of_their_questions_to_predictions(asks):
    for version in ("v1", "v2"):
        rows = [
            {"question_id": f"q{q}", "question": f"{q}?", "references": "a"}
            | {"answer": text, "checkpoint": version, "group": f"fact {q // 2}"}
            for q in range(24)
            for text in ("a" if (q % 3 == 0) == (version == "v1") else "b", "a")
        ]
        pd.DataFrame(rows).to_csv(f"{version}.csv", index=False)
    inputs = read_study(["v1.csv", "v2.csv"], Reading(beams=False))
    of_question = inputs.all_predictions.set_index("question_id")["group"]
    assert of_question["q5"].unique().tolist() == ["fact 2"]


@pytest.mark.parametrize("n_samples", [2, 4])
def test_samples_that_differ_cannot_be_declared_greedy(n_samples, asks, capsys):
    for version in ("v1", "v2"):
        rows = [
            {"question_id": f"q{q}", "question": f"{q}?", "references": "a", "answer": text}
            for q in range(9)
            for text in "ab" * (n_samples // 2)
        ]
        rows[0]["answer"] = version
        pd.DataFrame(rows).to_csv(f"{version}.csv", index=False)
    assert run("compare", "v1.csv", "v2.csv", "--samples", "--greedy") == 1
    assert "--greedy has no meaning" in capsys.readouterr().err


def test_a_second_ask_of_samples_replaces_their_halves(asks):
    rng = np.random.default_rng(1)
    for name in ("v1a", "v2a", "v1b", "v2b"):
        rows = [
            {"question_id": f"q{q}", "question": f"{q}?", "references": "a", "answer": text}
            for q in range(40)
            for text in rng.choice(list("abc"), 4)
        ]
        pd.DataFrame(rows).assign(checkpoint=name[:2]).to_csv(f"{name}.csv", index=False)
    first, second = ["v1a.csv", "v2a.csv"], ["v1b.csv", "v2b.csv"]
    inputs = read_study(first, Reading(beams=False, again=second))
    for rows in inputs.predictions.values():
        assert rows["ask"].value_counts().to_dict() == {0: 80, 1: 80}


def test_three_asks_in_a_column_are_crossed_in_all_pairs_and_their_order_does_not_matter(asks):
    rng = np.random.default_rng(2)
    files = [(version, ask) for version in ("v1", "v2") for ask in "ab"]
    rows = pd.concat(pd.read_csv(f"{v}{a}.csv").assign(ask=a) for v, a in files)
    third = rows[rows["ask"] == "a"].assign(
        ask="c", confidence=rng.random(160).round(3), correct=rng.integers(0, 2, 160)
    )
    three, crossed = pd.concat([rows, third]), []
    for out, numbers in (("up", "abc"), ("down", "cab")):
        named = three.assign(ask=three["ask"].map({a: k for k, a in enumerate(numbers)}))
        named.to_csv(f"{out}.csv", index=False)
        fast = ("--replicates", 200, "--min-contrast", 5)
        assert run("compare", f"{out}.csv", *fast, "--out", out) == 0
        claims = pd.read_csv(f"{out}/claims.csv").query("asks == 'cross'").set_index("metric")
        crossed.append(claims)
    assert crossed[0]["halvings"].eq(3).all()
    assert crossed[0].loc["moved", "value"] == pytest.approx(crossed[1].loc["moved", "value"])


def test_a_part_of_one_version_asked_again_is_a_control(asks, capsys):
    for version in ("v1", "v2"):  # the version is in the file's name only
        rows = pd.read_csv(f"{version}a.csv").drop(columns="checkpoint")
        rows.to_csv(f"{version}.csv", index=False)
    rows.head(30).to_csv("v2_again.csv", index=False)
    fast = ("--replicates", 200, "--min-contrast", 5, "--verbose")
    files = ("v1.csv", "v2.csv", "--again", "v2_again.csv", "--greedy")
    assert run("compare", *files, *fast) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Of 30 answers that were asked again, 0 changed their label" in text
    assert "a copied file looks the same" in text
    claims = pd.read_csv("comparison/claims.csv").query("metric == 'moved'")
    assert claims[["basis", "repeated", "flipped"]].to_numpy().tolist() == [["control", 30, 0]]


def test_a_copy_is_a_second_ask_of_greedy_answers_only(asks, capsys):
    files = ("v1a.csv", "v2a.csv", "--again", "v1c.csv", "v2c.csv", "--greedy")
    for version in ("v1", "v2"):
        pd.read_csv(f"{version}a.csv")[::-1].to_csv(f"{version}c.csv", index=False)
    assert run("metrics", *files[:-1]) == 1
    assert "say that the answers are greedy" in capsys.readouterr().err
    inputs = read_study(files[:2], Reading(again=files[3:5], greedy=True))
    assert inputs.is_greedy and inputs.all_predictions["ask"].nunique() == 2


def test_asks_in_several_files_are_one_set_of_asks(asks):
    for k, ask in enumerate("ab", start=1):
        versions = pd.concat(pd.read_csv(f"{name}{ask}.csv") for name in ("v1", "v2"))
        versions.assign(ask=k).to_csv(f"{ask}.csv", index=False)
    rows = read_study(["a.csv", "b.csv"], Reading()).all_predictions
    assert rows["ask"].value_counts().to_dict() == {0: 160, 1: 160}
    second = pd.read_csv("b.csv")
    assert rows.loc[rows["ask"] == 1, "confidence"].tolist() == second["confidence"].tolist()


WORDS = {
    "own": "followed, if no answer flips by itself (declared)",
    "constant": "lost its knowledge",
    "random": "lost its knowledge",
    "shuffled": "lost its knowledge",
}


def test_only_a_later_confidence_that_knows_is_said_to_have_followed(tmp_path, monkeypatch):
    """The estimators rate the same answers, and differ in the later confidence only."""
    monkeypatch.chdir(tmp_path)
    rows = []
    for later in WORDS:
        world = StateWorld(later, later=later, weight=2.0, noise=(1.0, 0.1))
        labels, stated = draw_answers(world, 1000, np.random.default_rng(4))
        for k, version in enumerate(("v1", "v2")):
            answers = {"question_id": np.arange(1000), "correct": labels[k]}
            answers |= {"checkpoint": version, "confidence": stated[k], "estimator": later}
            rows.append(pd.DataFrame(answers))
    pd.concat(rows).to_csv("rows.csv", index=False)
    assert run("compare", "rows.csv", "--greedy", "--replicates", 200) == 0
    claims = pd.read_csv("comparison/claims.csv").query("metric == 'moved'")
    assert dict(zip(claims["estimator"], claims["word"], strict=True)) == WORDS


def test_a_partly_copied_second_ask_is_named_as_such(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = ask_twice(CHANGED, np.random.default_rng(0), n=600, copied=0.6)
    for (version, ask), part in rows.groupby(["checkpoint", "ask"]):
        part.drop(columns="ask").to_csv(f"{version}{'ab'[ask]}.csv", index=False)
    files = ("v1a.csv", "v2a.csv", "--again", "v1b.csv", "v2b.csv", "--replicates", 200)
    assert run("compare", *files, "--verbose") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "moved with the labels" in text and "Ask again without a cache" in text
    assert "ask twice" not in text
    assert "so a part seems copied" in text and "in two asks of a version, 0 %" in text
    for version in ("v1", "v2"):
        pd.read_csv(f"{version}a.csv")[::-1].to_csv(f"{version}b.csv", index=False)
    assert run("compare", *files, "--greedy") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "✓ followed" in text and "0 changed their label" in text
    assert "a copied file looks the same" in text
