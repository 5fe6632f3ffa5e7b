"""docs/validation.md has the numbers of the simulations in benchmarks/outputs."""

import re
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import binom

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")


def read(name):
    return pd.read_csv(ROOT / "benchmarks" / "outputs" / f"{name}.csv", float_precision="high")


def short(value, digits=3):
    """Print a number as the page does, such as .947, −.002 or 1.000."""
    return re.sub(r"^(−?)0\.", r"\1.", f"{value:.{digits}f}".replace("-", "−"))


def span(*columns, digits=3):
    """Print the lowest and the highest value of columns."""
    low, high = (choose(choose(column) for column in columns) for choose in (min, max))
    return f"{short(low, digits)}–{short(high, digits)}"


def percent(*columns, digits=1):
    """Print the lowest and the highest value of columns in per cent, such as 0.0–6.7."""
    low, high = (choose(choose(column) for column in columns) for choose in (min, max))
    return f"{low:.{digits}f}–{high:.{digits}f}"


def in_order(column):
    """Print values in per cent, such as 11, 82, 100."""
    return ", ".join(f"{value:.0f}" for value in column)


NOTHING = ("constant", "random", "shuffled", "random, groups of four")
LIMIT = "own state, then difficulty, gained easier"
SAMPLED = {
    "*followed*, ten samples, 15 % changed, 300 questions, 1 and 20 halvings": (
        "ten samples, 15 % changed"
    ),
    "the same, many chance flips": "ten samples, many chance flips, 15 % changed",
    "the same, four samples": "four samples, 15 % changed",
}


def coverage():
    exact = read("few_changed_exact").set_index("lost")
    yield "Δ₀ᵇ of one pair without ties, 3 lost questions, exact", span(exact.loc[3])
    yield "5 lost questions", span(exact.loc[5])
    yield "20 lost questions", span(exact.loc[20])
    few_changed_rows = read("few_changed").set_index(["metric", "compared"])[
        ["lowest", "highest"]
    ]
    by_metric = few_changed_rows.xs("alone", level="compared")
    yield "Δ₀ᵇ with ties, 5 or 10 lost questions", span(by_metric.loc["Δ₀ᵇ"].stack())
    yield "change AUC, 5 or 10 lost questions", span(by_metric.loc["change AUC"].stack())
    independent = few_changed_rows.xs("independent", level="compared").stack()
    yield "difference of two independent estimators", span(independent)
    shared = read("shared_pairs")
    yield (
        "mean over three pairs that share questions",
        span(shared["lowest"], shared["highest"]),
    )
    yield "Δ_K next to a control (Fieller)", span(read("controls")["coverage"] / 100)
    yield "numbers corrected by an audit", span(read("audits")["coverage"] / 100)
    large = read("large_studies").set_index(["world", "questions"]).mean(axis=1) / 100
    row = "influences instead of draws, 2,000 to 20,000 questions, mean of 18 statistics"
    yield row, span(large.drop(["groups of 1 to 40", "groups of 5"]))
    fives = "the same, 20,000 questions in groups of 5, 60 worlds"
    yield fives, span(large.loc[["groups of 5"]])
    few = "the same, 2,000 questions in groups of 1 to 40, far below the limit"
    yield few, span(large.loc[["groups of 1 to 40"]])


def false_claims():
    equal = read("several_estimators")
    yield (
        "one of 2 to 25 equal estimators is above another: simultaneous intervals",
        percent(equal["simultaneous"]),
    )
    yield "the same: the paper's marks", percent(equal["marks"])
    checkpoints = read("checkpoints")["found"].dropna()
    yield (
        "two equal checkpoints differ, or four have a trend (AUC, Brier score)",
        percent(checkpoints),
    )
    worlds = read("knew_moved_knows")
    knows_nothing = worlds[worlds["world"].isin([f"later {kind}" for kind in NOTHING])]
    yield (
        "a constant, random or shuffled later confidence: change AUC and Δ₀ᵇ above chance",
        percent(knows_nothing["before"]),
    )
    yield "the same: *followed*", percent(knows_nothing["followed"])
    limit = worlds["world"] == LIMIT
    is_sampled = worlds["world"].str.contains("samples?")
    other_worlds = worlds[~worlds["follows"] & ~limit & ~is_sampled]
    yield "one state, difficulty or a copy: *followed*", percent(other_worlds["followed"])
    yield (
        "own state, then difficulty, gained questions easier (the known limit): *followed*",
        percent(worlds[limit]["followed"]),
    )
    asks = worlds[worlds["world"].str.endswith("nothing changed")]
    single, crossed = asks.query("halvings == 0"), asks.query("halvings > 0")
    yield "nothing changed, one sampled ask: all five tests", percent(single["all_five"])
    yield "nothing changed, cross-asked: *followed*", percent(crossed["followed"])
    yield "the same: *moved* alone", percent(crossed["moved"])
    marks = read("marks").set_index("world")
    for noun, world in (
        ("accuracy that falls", "falls by 0.01"),
        ("calibration off", "off by .02"),
    ):
        rows = marks.loc[world]
        yield f"{noun} by exactly the margin: ✓ or ✗", percent(rows["yes"], rows["no"])
    noisier = marks.loc["difficulty, more noise", "moved_against"]
    yield "only noisier later: *moved against*, 1,000 questions", f"{noisier:.1f}"
    second_asks = read("asked_again")
    two = second_asks.query("asks == 'two'")
    honest, copied = two.query("copied == 0"), two.query("world == 'unchanged' and copied > 0")
    rate = percent(copied["followed"])
    yield "nothing changed, 30 or 60 % of a second ask copied: *followed*", rate
    yield "an honest second ask is taken for copies", percent(honest["copies"])
    part = second_asks.query("asks == 'part' and world == 'unchanged'")
    yield (
        "nothing changed, 0 to 30 % flip, 50 or 200 answers asked again: *followed*",
        percent(part["followed"]),
    )
    control = read("controls").query("of_knowledge == 0")
    flips = control["delta"], control["auc"]
    yield "next to a control: *followed*, by Δ_K or AUC_K", percent(*flips)
    grouped = read("groups")
    moved = percent(grouped["moved_ignored"])
    yield "*moved*, for 400 questions in groups that share a fact", moved
    yield "the same with the column `group`", percent(grouped["moved_given"])
    yield (
        "not calibrated, for 400 questions in groups",
        percent(grouped["not_calibrated_ignored"]),
    )
    yield "the same with the column `group`", percent(grouped["not_calibrated_given"])
    calibrated = read("smooth_ece").query("confidence.str.startswith('calibrated')")
    yield ("not calibrated, by SmoothECE's test", percent(calibrated["p_below_05"], digits=0))
    claims = read("recipes").set_index("n_seeds")["claim"]
    yield "a recipe has an effect, 2 seeds", percent(claims[2])
    yield "a recipe has an effect, 3 or 5 seeds", percent(claims[[3, 5]])
    thresholds = read("thresholds")
    yield (
        "a selected threshold misses the precision (10 % are allowed)",
        percent(thresholds["misses_own"], thresholds["misses"]),
    )
    verdicts = read("verdicts")
    yield "*kept*", percent(verdicts["wrong_kept"])
    yield "*broken*", percent(verdicts["wrong_broken"])
    trains = read("release_trains")
    single = percent(trains["of_one_version"])
    yield "a locked threshold is *kept* on one of nine later versions", single
    yield "the same: on one or more of the nine", percent(trains["of_a_train"])
    levels = read("gate_levels").set_index("question")["fails"]
    rules, together = levels.drop("any rule"), levels["any rule"]
    yield "a gate fails although nothing differs, 1, 4 or 20 slices at once", percent(rules)
    yield "the same, with all three rules at once (1,000 to 4,000 worlds)", percent(together)
    sheets = read("few_labels").query("planned == 'yes'")
    assert set(sheets["allowed"]) == {10}
    yield (
        "a sheet of labels certifies a wrong threshold (10 % are allowed)",
        percent(sheets["wrong"]),
    )
    shared = read("several_certificates").set_index("shared")["wrong"]
    yield (
        "one of ten certificates from one sheet that share 10 % is wrong",
        percent(shared["yes"]),
    )
    yield "the same, with 10 % each", percent(shared["no"])


def power():
    worlds = read("knew_moved_knows").query("n_compared == 1").set_index("world")
    for name in ("weak", "strong"):
        rows = worlds.loc[f"{name} follower"].sort_values("n")
        yield (
            f"*followed*, a {name} follower, 300, 1,000 and 3,000 questions",
            in_order(rows["followed"]),
        )
    for name, world in SAMPLED.items():
        rows = worlds.loc[world].query("n == 300 and halvings > 0").sort_values("halvings")
        yield name, in_order(rows["followed"])
    part = read("asked_again").query("asks == 'part' and world != 'unchanged' and n == 300")
    for flips in (0.0, 0.02):
        name = "*followed*, 30 % changed, 300 questions, 50 and 200 asked again, "
        ending = f"{flips:.0%} flip".replace("%", " %") if flips else "none flips"
        yield name + ending, in_order(part[part["flips"] == flips]["followed"])
    control = read("controls").query("of_knowledge > 0")
    yield (
        "next to a control: Δ_K or AUC_K of .5 or 1",
        percent(control["delta"], control["auc"]),
    )
    planned = read("planned_power").dropna(subset="found").set_index("metric")["found"]
    tests = ["moved", "followed"]
    yield "a difference that `persistcal plan` promises (80 %)", percent(planned.drop(tests))
    yield "*moved* or *followed*, with the AUC that it promises", percent(planned[tests])
    marks = read("marks").query("estimators == 1").set_index("world")
    stays = marks.loc["falls by 0", "yes"]
    yield "✓ of an accuracy that stays, 300, 3,000 and 30,000 questions", in_order(stays)
    exact = marks.loc["exact"].set_index("n")["yes"]
    yield (
        "✓ of an exact calibration, 3,000 and 100,000 questions",
        in_order(exact[[3000, 100_000]]),
    )
    for world in ("off by .05", "off by .1 and −.1"):
        failing = marks.loc[world, "no"]
        yield f"✗ of a calibration {world}, 300 and 3,000 questions", in_order(failing)
    decided = read("labels_to_decide")["decided"]
    yield (
        "a verdict by a check of `labels_to_decide` answers (80 %)",
        percent(decided, digits=0),
    )
    calibrated = "confidence == 'calibrated' and target == 0.8"
    selected = read("thresholds").query(calibrated).set_index("n_questions")["selected"]
    yield (
        "a threshold for 80 % is selected, calibrated, 60 questions",
        percent(selected[60], digits=0),
    )
    certified = read("few_labels").query(calibrated).set_index("looks")["certified"]
    yield (
        "a threshold for 80 % is certified by 60 labels of 800 answers",
        f"{certified['60']:.0f}",
    )
    yield "the same by 120 labels", f"{certified['120']:.0f}"


SECTIONS = {"Coverage of intervals": coverage, "False claims": false_claims, "Power": power}


@pytest.mark.parametrize("title", SECTIONS)
def test_tables_have_the_simulated_numbers(title):
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [line.split(" | ")[:2] for line in section.splitlines() if line.startswith("| ")]
    printed = [(label.removeprefix("| "), value) for label, value in rows[1:]]
    assert printed == list(SECTIONS[title]())


def test_sentences_have_the_simulated_numbers():
    few_changed_rows = read("few_changed").groupby("compared")
    low, high = few_changed_rows["lowest"].min(), few_changed_rows["highest"].max()
    few_lost = 100 * binom.cdf(4, 2000, 5 / 2000)
    without_knowledge = read("controls").query("of_knowledge == 0")["difference"]
    marks = read("several_estimators").query("estimators == 10")["marks"]
    audits = read("audits").query("number == 'Δ₀ᵇ'").set_index("judge")["mean_width"]
    failing = read("failing_seeds").set_index("n_seeds")["seeds"]
    spread = read("seeds").query("ratio == 3")[["questions", "seeds"]].agg(["min", "max"]) * 100
    calibration = read("smooth_ece").set_index("confidence")
    tried = calibration[["percentile", "basic", "percentile_minus_floor"]]
    assert not (tried.min() >= 90).any()
    differences = read("smooth_ece_differences")["contains_truth"]
    fixed = read("checkpoints")["found_with_fixed_accuracy"]
    means = read("smooth_ece_means").iloc[0]
    transforms, precision = read("transforms"), read("precision")
    assert not transforms["other_verdict"].any()
    deep = precision[precision["model"].str.startswith("SmolLM2")]
    text = " ".join(PAGE.split())
    for sentence in (
        f"covers only {short(low['class sizes kept'])} to {short(high['class sizes kept'])}",
        f"they cover {short(low['correlated'])} to {short(high['correlated'])}",
        f"is {short(audits['wrong about 5 %'], 2)} wide with 400 labelled questions",
        f"and {short(audits['5 %, sheet of 50, 25 and 25'], 2)} wide with 100",
        f"at least one worse in more than {marks.min() // 1:.0f} % of the studies",
        f"claimed falsely in up to {without_knowledge.max():.0f} %",
        f"in {few_lost:.0f} % of the studies fewer than five are lost",
        f"Brier scores differ in up to {fixed.max()} %",
        f"change no verdict in {400 * len(transforms):,} studies",
        f"true ones in {calibration['p_below_05']['log-odds twice the true ones']} of 100",
        f"true ones in {calibration['p_below_05']['log-odds 1.25 times the true ones']}.",
        f"in {tried.min().min()} to {tried.max().max()} % of the studies, and intervals of "
        f"differences between estimators contain the truth in {differences.min()} to "
        f"{differences.max()} %",
        f"rejects calibrated means in {means['full']} % (over four checkpoints) and "
        f"{means['contrast']} % (over their pairs)",
        "questions contain the truth in {:.0f} to {:.0f} % of".format(*spread["questions"]),
        "seeds and questions in {:.0f} to {:.0f} %".format(*spread["seeds"]),
        f"in {100 * failing[3]:.0f} % of studies with three seeds, in {100 * failing[5]:.0f} % "
        f"with five and in {100 * failing[10]:.0f} % with ten",
        f"by {short(deep['bfloat16'].min())} to {short(deep['bfloat16'].max())} on average",
        f"another seed by {short(deep['another_seed'].min())} to "
        f"{short(deep['another_seed'].max())}",
        f"at most {short(deep['precision_float32'].max(), 4)} (on a CPU",
    ):
        assert sentence in text, sentence
