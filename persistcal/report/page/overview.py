"""The page's texts about a study."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.findings import CALIBRATION, FOLLOWING, THRESHOLD
from persistcal.evaluation.predictions import ABSENT, partly_shared, shared_by_models
from persistcal.evaluation.samples import LEVEL
from persistcal.report.layout import pair_title, place_title
from persistcal.report.page.contents import Contents, Part, StudyTables
from persistcal.report.page.sentences import (
    best_estimators,
    calibration_texts,
    compare,
    control_text,
    count_questions,
    follow_texts,
    sentence,
)
from persistcal.report.phrases import (
    accuracy_sentence,
    possible_errors,
    short,
    short_interval,
    threshold_sentence,
)


class Sentence(NamedTuple):
    """A text, and the model and dataset that it is about."""

    about: str
    text: str


def findings(study: Contents) -> list[Sentence]:
    """Return the sentences at the top of the page."""
    texts, tables = list(sentences(study)), study.rows
    if "states" in tables:
        texts += of_states(study, tables["states"])
    texts += of_thresholds(study)
    texts += of_controls(study)
    if "by_change" in tables:
        texts += of_changes(study, tables["by_change"])
    if "corrections" in tables:
        texts += of_audit(study, tables["corrections"])
    return texts


def sentences(study: Contents) -> Iterator[Sentence]:
    """Yield sentences per model, dataset and training set of estimators.

    The first sentences are about the change of answers, whether confidence followed, and
    calibration. The next ones compare the estimators.
    """
    controlled: set[tuple[str, str]] = (
        set()
    )  # models and datasets with claims next to a control
    if "by_change" in study.rows:
        rows = study.rows["by_change"]
        tested = rows.loc[rows["control"].fillna("").ne(""), ["model", "dataset"]]
        controlled = set(tested.itertuples(index=False, name=None))
    for part in study.parts:
        findings = part.findings
        title, dataset = part.subject.title(study.labels), part.subject.dataset
        members = list(part.members)
        stages = study.stages[part.subject.model]
        if findings:
            ends, accuracy = findings.update[2:], findings.accuracy
            yield Sentence(title, accuracy_sentence(accuracy, *ends))
        trained = list(dict.fromkeys(t for t, _ in members if t != dataset)) or [dataset]
        for train_dataset in trained if members else ():
            # Untrained estimators are shown next to adapters that were trained on another
            # dataset.
            names = {
                e: (t, e)
                for t, e in sorted(members, key=lambda m: m[0] == train_dataset)
                if t in (train_dataset, dataset) and (e in study.main or not study.main)
            }
            heading = title
            if len(trained) > 1 or train_dataset != dataset:
                name = study.labels["datasets"].get(train_dataset, train_dataset)
                heading += f", trained on {name}"
            compared = compare(part.replicates, list(names.values()), part.subject.settings)
            if not compared:
                yield Sentence(heading, "Nothing can be said: no measure is defined.")
                continue
            if findings:
                labels = study.labels["estimators"]
                following, calibrated = (
                    {e: (findings.of[q][m], labels.get(e, e)) for e, m in names.items()}
                    for q in (FOLLOWING, CALIBRATION)
                )
                best, texts = best_estimators(compared), []
                given = "adapters" if part.texts else "predictions"
                if (part.subject.model, dataset) not in controlled:
                    texts = follow_texts(best, following, accuracy, ends, given)
                texts += calibration_texts(best, calibrated, ends, given)
                yield from (Sentence(heading, text) for text in texts)
            usable = [pair for pair in part.pairs if pair.kept and pair.has_both_directions]
            questions = count_questions(usable) if usable else ""
            text = sentence(compared, study.labels["estimators"], questions)
            if compared.scope == "full":
                text += " No contrast set is large enough to say whether it follows knowledge."
            yield Sentence(heading, text)
        is_wrong = ~(part.correct == 1).any(axis=1)
        if wrong := [stages[name].label for name in compress(part.checkpoints, is_wrong)]:
            text = (
                f"No answer of {', '.join(wrong)} is correct; see whether answers and "
                "references have the same form."
            )
            yield Sentence(title, text)


def of_states(study: Contents, states: pd.DataFrame) -> Iterator[Sentence]:
    """Yield how many pairs of a model's checkpoints differ in accuracy, and which models do.

    `sentences` has the accuracies of the first and the last checkpoint.
    """
    checkpoints = {
        model: {name: stage.label for name, stage in entries.items()}
        for model, entries in study.stages.items()
    }
    accuracies = states[states["metric"] == "accuracy"].fillna({"other_model": ""})
    for place, group in accuracies.groupby(["model", "other_model", "dataset"], sort=False):
        pairs = group.to_dict("records")
        if place[1]:
            text = _of_pair(pairs[0], pair_title(pairs[0], checkpoints))
        else:
            text = f"{' '.join(_count_pairs(group))}."
        if place[1] or len(pairs) > 1:
            yield Sentence(place_title(place, study.labels), text)


def _of_pair(row: Mapping[Hashable, Any], pair: str) -> str:
    values = f"{short(row['earlier_value'])} to {short(row['later_value'])}"
    if row["p_holm"] >= LEVEL:
        return (
            f"The accuracies of {pair} ({values}) cannot be told apart: the difference of "
            f"{short(row['difference'])} {_interval(row)} may be zero (adjusted by Holm's "
            "method)."
        )
    way = "rises" if row["difference"] > 0 else "falls"
    difference = short(abs(row["difference"]))
    return f"Accuracy {way} from {pair}, {values}: by {difference} {_interval(row)}."


def _interval(row: Mapping[Hashable, Any], prefix: str = "") -> str:
    return short_interval(row[f"{prefix}lower_2_5pct"], row[f"{prefix}upper_97_5pct"])


def pairs_that_differ(study: Contents, part: Part) -> list[tuple[str, str]]:
    """Return how many pairs of checkpoints differ in accuracy, if there are several."""
    if "states" not in study.rows:
        return []
    rows = study.rows["states"].fillna({"other_model": ""})
    key = [part.subject.model, "", part.subject.dataset, "accuracy"]
    pairs = rows[(rows[["model", "other_model", "dataset", "metric"]] == key).all(axis=1)]
    return [_count_pairs(pairs)] if len(pairs) > 1 else []


def _count_pairs(pairs: pd.DataFrame) -> tuple[str, str]:
    n_different = int((pairs["p_holm"] < LEVEL).sum())
    return f"{n_different} of {len(pairs)} pairs", "of checkpoints differ in accuracy"


def of_thresholds(study: Contents) -> Iterator[Sentence]:
    """Yield sentences on the thresholds between the first and the last checkpoint."""
    verdicts: list[str] = []
    for part in study.parts:
        if not (findings := part.findings):
            continue
        checked = findings.of.get(THRESHOLD, {})
        for name, finding in [
            (e, finding) for (_, e), finding in checked.items() if e in study.main
        ]:
            label = study.labels["estimators"].get(name, name)
            text = threshold_sentence(finding, label, findings.update[2:])
            yield Sentence(part.subject.title(study.labels), text)
            verdicts += finding.evidence["verdict"]
    yield from (Sentence("", text) for text in possible_errors(verdicts))


def of_controls(study: Contents) -> Iterator[Sentence]:
    """Yield a sentence on each pair of states of the same weights: how much flips there."""
    for part in study.parts:
        names, correct = part.answers.checkpoints, part.answers.correct
        stages = study.stages[part.subject.model]
        controls = set(map(tuple, study.shown.controls.get(part.subject.model, ())))
        for pair in part.pairs:
            ends = names[pair.earlier], names[pair.later]
            if ends not in controls:
                continue
            n = int((correct[[pair.earlier, pair.later]] != ABSENT).all(axis=0).sum())
            first, second = (stages[name].label for name in ends)
            text = (
                f"{first} and {second} are the same weights, asked otherwise: the label of "
                f"{len(pair.questions):,} of {n:,} questions flips, without a change of "
                "knowledge. What estimators score on these is the control of what they score "
                "on other pairs."
            )
            yield Sentence(part.subject.title(study.labels), text)


def of_changes(study: Contents, rows: pd.DataFrame) -> Iterator[Sentence]:
    """Yield a sentence per kind of change with a control: which estimators followed it."""
    rows = rows[rows["control"].fillna("").ne("") & rows["metric"].eq("delta0_balanced")]
    for keys, group in rows.groupby(["model", "dataset", "change", "control"], sort=False):
        *place, change, control = map(str, keys)
        text = control_text(change, control, group, study.labels)
        yield Sentence(place_title(place, study.labels), text)


def of_audit(study: Contents, rows: pd.DataFrame) -> Iterator[Sentence]:
    """Yield a text per model and dataset about the results with a person's labels."""
    for part in study.parts:
        subject, stages = part.subject, study.stages[part.subject.model]
        of_part = (rows["model"] == subject.model) & (rows["dataset"] == subject.dataset)
        corrected = rows[of_part & rows["corrected"].notna()]
        if corrected.empty:
            continue
        [size] = corrected[corrected["metric"] == "contrast_size"].to_dict("records")
        low, high = (round(size[f"{end}pct"]) for end in ("lower_2_5", "upper_97_5"))
        text = (
            f"A person labelled {size['n_audited']:,} of {size['n_questions']:,} questions. By "
            f"these labels {round(size['corrected']):,} [{low:,}, {high:,}] changed between "
            f"{stages[size['earlier']].label} and {stages[size['later']].label}; by the "
            f"judge's {round(size['judged']):,}."
        )
        moved = corrected[
            (corrected["metric"] == "delta0_balanced") & corrected["estimator"].isin(study.main)
        ]
        outside = ~moved["judged"].between(moved["lower_2_5pct"], moved["upper_97_5pct"])
        for row in moved[outside].to_dict("records"):
            name = subject.name((row["train_dataset"], row["estimator"]), study.labels)
            text += (
                f" Δ₀ᵇ of {name} there is {short(row['corrected'])} {_interval(row)}, not "
                f"{short(row['judged'])} as judged."
            )
        yield Sentence(subject.title(study.labels), text)


def lede(study: Contents) -> str:
    """Return the paragraph below the question."""
    models = len({part.subject.model for part in study.parts})
    owner = "a model" if models == 1 else f"{models} models"
    if all(len(part.answers.checkpoints) == 1 for part in study.parts):
        return f"One checkpoint of {owner} answered the questions, so no change can be seen."
    stages = [stage for of_model in study.stages.values() for stage in of_model.values()]
    kind = "checkpoints" if any(s.tokens is None for s in stages) else "training checkpoints"
    return (
        f"Several {kind} of {owner} answered the same questions, and their knowledge differs. "
        "A good confidence changes with the knowledge. A confidence that only separates hard "
        "from easy questions can look as good on all questions, but it is at chance on "
        "questions whose answers became right or wrong."
    )


def counts(study: Contents) -> list[tuple[str, str]]:
    """Return the size of the study: numbers with their units."""
    parts = study.parts
    runs = [run for part in parts for run in part.answers.confidence.values()]  # one ask
    sizes = {
        "model": len({p.subject.model for p in parts}),
        "checkpoint": len({(p.subject.model, c) for p in parts for c in p.checkpoints}),
        "dataset": len({p.subject.dataset for p in parts}),
        "question": sum(len(p.answers.questions) for p in parts),
        "estimator": len({e for p in parts for _, e in p.answers.estimators}),
        "confidence": int(sum(np.sum(~np.isnan(run)) for run in runs)),
    }
    return [(f"{n:,}", name if n == 1 else f"{name}s") for name, n in sizes.items()]


def explorer_note(
    study: Contents, rows: Sequence[NDArray[np.intp]], kept: Sequence[bool]
) -> str:
    """Return a sentence about the questions in the explorer."""
    n, n_all = sum(map(len, rows)), sum(len(p.answers.questions) for p in study.parts)
    if all(kept):
        return (
            f"Every question, every answer, every confidence: {n:,} questions, each with a "
            "link of its own."
        )
    return (
        f"{n:,} of {n_all:,} questions, so that the page stays small: those of contrast sets "
        f"first, then a random sample of the others (seed {study.seed}). All other "
        "numbers on this page are of all questions."
    )


def missing(study: Contents, kept: Sequence[bool]) -> list[str]:
    """Return the gaps of the study's data; `kept` marks parts shown in full."""
    lines = []
    for part, whole in zip(study.parts, kept, strict=True):
        lacks = _missing_of(part)
        if not whole:
            lacks.append("the explorer holds a part of the questions.")
        lines += [f"{part.subject.title(study.labels)}: {text}" for text in lacks]
    by_dataset: dict[str, dict[str, NDArray[np.object_]]] = {}
    for part in study.parts:
        answered = part.answers.questions[part.answers.correct[-1] != ABSENT]
        model = study.labels["models"][part.subject.model]
        by_dataset.setdefault(part.subject.dataset, {})[model] = answered
    for dataset, answered_by in by_dataset.items():
        name = study.labels["datasets"][dataset]
        lines += [
            f"{name}: the last checkpoints of {shared}."
            for shared in shared_by_models(answered_by)
        ]
    for name, rows in study.rows.items():
        if name in study.shown.descriptions and (lost := int(rows["value"].isna().sum())):
            lacking = rows.loc[rows["value"].isna(), "estimator"]
            names = ", ".join(study.labels["estimators"].get(e, e) for e in lacking.unique())
            lines.append(
                f"Table {name}: {lost:,} of {len(rows):,} cells have no value, of {names}."
            )
    return [*lines, *absent_analyses(study.made, study.shown.analyses)]


def absent_analyses(made: StudyTables, names: Collection[str]) -> list[str]:
    """Name the analyses that were asked for and that the page was made without."""
    tables = {
        "transfer": ("transfer matrices", made.transfer),
        "gcm_headroom": ("headroom over the verifier", made.headroom),
        "weight_similarity": ("similarity of weights", made.similarity),
        "hidden_state_variance": ("hidden-state variance", made.variance),
    }
    lost = [name for key, (name, rows) in tables.items() if key in names and rows.empty]
    text = "the target “all” adds them to this page."
    return [f"Analyses ({', '.join(lost)}): {text}"] if lost else []


def _missing_of(part: Part) -> list[str]:
    checkpoints, questions = part.answers.checkpoints, part.answers.questions

    def named(pair: ContrastSet) -> str:
        return f"{checkpoints[pair.earlier]}–{checkpoints[pair.later]}"

    lines = []
    ids = [questions[mask] for mask in part.answers.correct != ABSENT]
    if partly := partly_shared(dict(zip(checkpoints, ids, strict=True))):
        lines.append(f"{partly}.")
    if not part.compared:  # a verdict begins with them
        lines += part.doubts
    if small := [f"{named(p)} ({len(p.questions):,})" for p in part.pairs if not p.kept]:
        lines.append(
            f"contrast sets of fewer than {part.subject.settings.min_contrast:,} questions are "
            f"left out of the contrast metrics: {', '.join(small)}."
        )
    large = [pair for pair in part.pairs if pair.kept]
    if single := [named(p) for p in large if not p.has_both_directions]:
        lines.append(
            f"Δ₀ᵇ and Δᵇ are means over {len(large) - len(single)} of {len(large)} pairs: "
            f"{', '.join(single)} hold improvements or regressions alone. With more questions "
            "there may be both; study.pairs names the pairs that are compared."
        )
    if part.texts is None:
        lines.append("no texts of answers, because the files have predictions alone.")
    return lines
