"""docs/validation.md has the numbers of the simulations in benchmarks/outputs."""

import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")


def read(name):
    return pd.read_csv(ROOT / "benchmarks" / "outputs" / f"{name}.csv", float_precision="high")


def short(value, digits=3):
    """Print a number as the page does, such as .947, −.002 or 1.000."""
    return re.sub(r"^(−?)0\.", r"\1.", f"{value:.{digits}f}".replace("-", "−"))


def span(low, high, digits=3):
    return "–" if pd.isna(low) else f"{short(low, digits)}–{short(high, digits)}"


def share(value):
    return "–" if pd.isna(value) else f"{value:.1f}"


def few_changed():
    for row in read("few_changed_exact").itertuples():
        yield row.lost, span(row.lowest, row.highest)
    for key, rows in read("few_changed").groupby(["metric", "lost"]):
        yield *key, *map(span, rows["lowest"], rows["highest"])
    for lost, rows in read("shared_pairs").groupby("lost"):
        yield lost, *map(span, rows["lowest"], rows["highest"])


def several_estimators():
    for n, rows in read("several_estimators").groupby("estimators"):
        columns = (rows[name] for name in ("simultaneous", "marks", "holm"))
        yield n, *(f"{column.min():.1f}–{column.max():.1f}" for column in columns)


def checkpoints():
    found = read("checkpoints").groupby(["confidence", "tested"])["found"]
    for row, values in found:
        yield *row, *map(share, values)


def asked_twice():
    for row in read("asked_twice").itertuples():
        claims = row.one_ask, row.change_auc, row.delta0_balanced, row.followed, row.against
        yield row.confidence, f"{row.knowledge_adds:g}", f"{row.changed:g}", *map(share, claims)


def controls():
    for row in read("controls").itertuples():
        world = row.of_chance, row.of_knowledge
        yield (
            row.n_questions,
            f"{100 * row.chance:g}",
            f"{100 * row.gained:g}",
            *(f"{sign:g}".replace("-", "−") for sign in world),
            *map(share, (row.difference, row.delta, row.auc, row.coverage)),
        )


def groups():
    for size, *shares in read("groups").itertuples(index=False):
        followed, not_calibrated, followed_given, calibrated_given = map(share, shares)
        yield size, followed, followed_given, not_calibrated, calibrated_given


def recipes():
    for n_seeds, rows in read("recipes").groupby("n_seeds"):
        columns = (rows[name] for name in ("questions", "recipe", "claim"))
        yield n_seeds, *(f"{column.min():.1f}–{column.max():.1f}" for column in columns)


def smooth_ece():
    for name, *values in read("smooth_ece").itertuples(index=False):
        yield name, *map(short, values[:3]), *(f"{value:.0f}" for value in values[3:])


def audits():
    for name, rows in read("audits").groupby("judge"):
        width = rows.loc[rows["number"] == "Δ₀ᵇ", "mean_width"].item()
        yield name, f"{rows['coverage'].min()}–{rows['coverage'].max()}", short(width, 2)


def precision():
    for model, steps, *values in read("precision").itertuples(index=False):
        yield f"{model}, {steps}", *(short(v, 4 if v < 0.001 else 3) for v in values)


def thresholds():
    for n, rows in read("thresholds").groupby("n_questions"):
        calibrated = rows[(rows["confidence"] == "calibrated") & (rows["target"] == 0.8)]
        yield (
            f"{n:,}",
            f"{calibrated['selected'].min():.0f}–{calibrated['selected'].max():.0f}",
            share(rows["misses_own"].max()),
            share(rows["misses"].max()),
        )


def few_labels():
    for (looks, planned), rows in read("few_labels").groupby(["looks", "planned"], sort=False):
        calibrated = rows[(rows["confidence"] == "calibrated") & (rows["target"] == 0.8)]
        yield (
            looks.replace(" ", ", "),
            planned,
            f"{calibrated['certified'].item():.0f}",
            share(rows["wrong"].max()),
            share(rows["allowed"].max()),
        )


def planned_power():
    for row in read("planned_power").itertuples():
        missing = pd.isna(row.difference)
        difference = "–" if missing else short(row.difference)
        changed = f"{row.gained} and {row.lost}"
        yield row.metric, changed, row.estimators, difference, share(row.found)


SECTIONS = [
    few_changed,
    several_estimators,
    checkpoints,
    asked_twice,
    controls,
    groups,
    recipes,
    smooth_ece,
    thresholds,
    few_labels,
    audits,
    planned_power,
    precision,
]


@pytest.mark.parametrize("section", SECTIONS)
def test_tables_have_the_simulated_numbers(section):
    rows = ["| " + " | ".join(map(str, row)) + " |" for row in section()]
    assert len(rows) > 2
    assert not [row for row in rows if row not in PAGE.splitlines()]


def test_concepts_have_the_width_of_an_audits_interval():
    widths = read("audits").query("number == 'Δ₀ᵇ'").set_index("judge")["mean_width"]
    small, large = widths["5 %, sheet of 50, 25 and 25"], widths["wrong about 5 %"]
    text = " ".join((ROOT / "docs" / "concepts.md").read_text(encoding="utf-8").split())
    assert f"is {short(small, 2)} wide, with 400 it is {short(large, 2)}" in text


def test_every_table_of_numbers_is_compared():
    expected = {"| " + " | ".join(map(str, row)) + " |" for part in SECTIONS for row in part()}
    printed = {row for row in PAGE.splitlines() if re.match(r"\|.*\d[^a-z]* \|$", row)}
    assert printed == expected


def test_sentences_have_the_simulated_numbers():
    failing = read("failing_seeds").set_index("n_seeds")["seeds"]
    spread = read("seeds").query("ratio == 3")[["questions", "seeds"]].agg(["min", "max"]) * 100
    differences = read("smooth_ece_differences")["contains_truth"]
    verdicts, fixed = read("verdicts"), read("checkpoints")["found_with_fixed_accuracy"]
    means = read("smooth_ece_means").iloc[0]
    transforms = read("transforms")
    assert not transforms["other_verdict"].any()
    decided = read("labels_to_decide")["decided"].agg(["min", "max"])
    text = " ".join(PAGE.split())
    for sentence in (
        f"Brier scores differ in up to {fixed.max()} %",
        f"contain the truth in {differences.min()} to {differences.max()} %",
        f"no verdict differs in {400 * len(transforms):,} studies",
        f"A verdict “kept” is wrong in at most {verdicts['wrong_kept'].max():.1f} %, "
        f"“broken” in at most {verdicts['wrong_broken'].max():.1f} %",
        "decides the verdict in {:.0f} to {:.0f} %".format(*decided),
        f"rejects calibrated means in {means['full']} % (over four checkpoints) and "
        f"{means['contrast']} % (over their pairs)",
        "questions contain the truth in {:.0f} to {:.0f} % of".format(*spread["questions"]),
        "seeds and questions in {:.0f} to {:.0f} %".format(*spread["seeds"]),
        f"in {100 * failing[3]:.0f} % of studies with three seeds, in {100 * failing[5]:.0f} % "
        f"with five and in {100 * failing[10]:.0f} % with ten",
    ):
        assert sentence in text, sentence
