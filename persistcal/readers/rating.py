"""Group, label and rate the answers of files, or the options of multiple choice."""

from collections.abc import Collection, Mapping, Sequence

import pandas as pd

from persistcal.answers.clusters import (
    RATED,
    cluster_table,
    identical,
    join_predictions,
    with_groups,
)
from persistcal.answers.halves import HALVINGS, can_be_halved, halve_samples
from persistcal.confidence.estimate import AnswerTables, Estimation, estimate
from persistcal.confidence.estimators.catalogue import OF_ANSWERS, registration_of
from persistcal.confidence.evidence import check_needs
from persistcal.confidence.registry import SEVERAL
from persistcal.judge.backends import Lexical
from persistcal.judge.run import label_answers
from persistcal.questions.labels import normalise
from persistcal.questions.splits import LEAST_SAMPLES, ask_of_half
from persistcal.readers.answers import (
    beam_table,
    can_be_beams,
    check_answers,
    check_stated,
    check_weights,
    label_table,
    question_table,
    stated_names,
)
from persistcal.readers.inputs import (
    SUBJECT,
    PredictionTables,
    checkpoints_by_model,
    distinct_rows,
    stack,
)
from persistcal.readers.options import check_options, name_ties, option_tables
from persistcal.readers.scales import missing_error
from persistcal.store.artifacts import ANSWERS, BEAMS, CLUSTERS, LABELS, PREDICTIONS, QUESTIONS
from persistcal.store.tables import select_rows
from persistcal.store.user_files import UserTableError

# Estimators by default, and estimators only for options
USUAL = ("end_correct", "self_consistency", "semantic_entropy")
OF_OPTIONS = ("option_probability", "option_margin", "option_entropy")
SCORES = {
    "none": "log-probability",
    "per_token": "log-probability per token",
    "per_character": "log-probability per character",
    "unconditional": "log-probability minus that without the question",
}
Parts = list[tuple[pd.DataFrame, dict[str, str]]]  # tables of one checkpoint and dataset

TABLES = {table.name: table for table in (ANSWERS, BEAMS, CLUSTERS, LABELS, QUESTIONS)}

_TREATED = {None: "are refused", "drop": "are left out"}  # missing confidences

_NOTES = {
    "equal": "Answers are samples: every answer to a question counts equally.",
    "softmax": "Answers are beams: they weigh by the softmax of their log-probabilities.",
    "deployed": "The first answer to each question is the deployed one; the others rate it.",
}


def rate_answers(
    rows: pd.DataFrame,
    asked: Sequence[str],
    *,
    beams: bool | None,
    is_deployed: bool,
    missing: str | None = None,
    halvings: int = HALVINGS,
) -> PredictionTables:
    """Group, label and rate tidy answers; without `beams` refuse possible beams.

    Predictions without a stated confidence are refused, or count as the number in `missing`, or
    are left out if it is "drop". Without `halvings` samples are one ask.
    """
    checkpoints = checkpoints_by_model(rows)
    weighting, beam_rows = _weighting(rows, beams), beam_table(rows)
    check_answers(rows)
    questions, labels = question_table(rows), label_table(rows)
    check_stated(rows, OF_ANSWERS)
    stated = stated_names(rows)
    if is_deployed:
        _check_deployed(beam_rows, weighting)
    choices = [name for name in OF_ANSWERS if name not in OF_OPTIONS] + stated
    functions = _functions(asked or [*USUAL, *stated], choices, stated)
    functions, left_out = _can_rate(
        functions, beam_rows, must=bool(asked), is_deployed=is_deployed
    )
    candidates = _by_file(beam_rows)
    tables = _label(candidates, questions, labels, weighting, is_deployed)
    lexical = int((tables["labels"]["source"] == "lexical").sum())
    notes = [
        _NOTES[weighting],
        *([_NOTES["deployed"]] if is_deployed else []),
        "Answers were grouped lexically: they mean the same if they match as an answer matches "
        "a reference, without case, accents, articles and punctuation.",
        _labelled_by(lexical, len(tables["labels"])),
        f"Rated by {', '.join(functions)}.",
        *left_out,
    ]
    inputs = PredictionTables(checkpoints, {}, **tables, notes=notes)
    beam_rows = stack(candidates, BEAMS)
    _rate(inputs, functions, beam_rows, weighting, is_deployed=is_deployed, missing=missing)
    inputs.is_greedy = weighting == "softmax"
    texts = beam_rows.groupby([*BEAMS.file_columns, "question_id"], sort=False)["text"]
    inputs.samples_differ = weighting == "equal" and int(texts.nunique().max()) > 1
    if halvings and weighting == "equal" and not is_deployed:
        tables_of_texts = beam_rows, questions, labels
        inputs.notes += _cross_ask(inputs, functions, tables_of_texts, missing, halvings)
    return inputs


def _cross_ask(
    inputs: PredictionTables,
    functions: Mapping[str, str],
    texts: Sequence[pd.DataFrame],
    missing: str | None,
    halvings: int,
) -> list[str]:
    """Add the predictions of both halves of the samples as asks; return notes.

    `texts` are the answers, questions and given labels. Answers of a half without a confidence
    are left out, or count as the number in `missing`.
    """
    beams, questions, labels = texts
    sizes = beams.groupby([*BEAMS.file_columns, "question_id"], sort=False).size()
    if not can_be_halved(beams):
        if sizes.max() == 1:
            return []
        return [
            f"Not cross-asked: {sizes.min()} samples per question are too few for two halves, "
            f"which need {LEAST_SAMPLES}."
        ]
    halved = []
    for model, rows in beams.groupby("model", sort=False):
        positions = {name: k for k, name in enumerate(inputs.checkpoints[str(model)])}
        halved.append(halve_samples(rows, positions, n_halvings=halvings))
    samples, halves = (
        pd.concat(parts, ignore_index=True) for parts in zip(*halved, strict=True)
    )
    pairs = samples[["dataset", "question_id", "half"]].drop_duplicates()
    tables = _label(
        _by_file(_name_halves(samples)),
        _name_halves(questions.merge(pairs)),
        _name_halves(labels.merge(pairs)),
        "equal",
        is_deployed=False,
        in_halves=True,
    )
    asked = PredictionTables(inputs.checkpoints, {}, notes=[], **tables)
    named = stack(_by_file(_name_halves(samples)), BEAMS)
    _rate(asked, functions, named, "equal", missing=missing or "drop")
    halves = _name_halves(halves)
    halves["ask"] = ask_of_half(halves["halving"], halves["side"])
    for key, rows in asked.predictions.items():
        by_ask = rows.drop(columns="ask", errors="ignore").merge(
            halves.drop(columns=["halving", "side"])
        )
        whole_id = by_ask["question_id"].str.rpartition(_HALF)[0]
        by_ask = by_ask.assign(question_id=whole_id)[inputs.predictions[key].columns]
        both = pd.concat([inputs.predictions[key], by_ask], ignore_index=True)
        inputs.predictions[key] = both
    return [
        f"Cross-asked: half of the {sizes.min()} samples of a question gives its answer and "
        f"label, the other half a confidence, and the reverse, in {halvings} random halvings."
    ]


_HALF = "\x1f"  # between the id of a question and the number of a half


def _name_halves(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the number of the half as a part of the question's id."""
    names = table["question_id"].astype(str) + _HALF + table["half"].astype(str)
    return table.assign(question_id=names).drop(columns="half")


def _by_file(beams: pd.DataFrame) -> Parts:
    """Return the answers of each checkpoint to a dataset, with these names."""
    return [
        (part, dict(zip(BEAMS.file_columns, map(str, subject), strict=True)))
        for subject, part in beams.groupby(list(BEAMS.file_columns), sort=False)
    ]


def rate_options(
    rows: pd.DataFrame, asked: Sequence[str], *, normalisation: str
) -> PredictionTables:
    """Rate the best option of each question, of rows from `tidy_options`."""
    checkpoints = checkpoints_by_model(rows)
    check_options(rows)
    made: dict[str, Parts] = {}
    for table, subject, part in option_tables(rows):
        made.setdefault(table.name, []).append((part, subject))
    tables = {name: stack(parts, TABLES[name]) for name, parts in made.items()}
    beams = tables.pop("beams")
    functions = _functions(asked or ["end_correct", *OF_OPTIONS], OF_ANSWERS, [])
    functions, left_out = _can_rate(functions, beams, must=bool(asked))
    notes = [
        f"Options are scored by their {SCORES[normalisation]}; the best one is the answer, and "
        "it is correct if it is the right option of the question.",
        *name_ties(rows),
        f"Rated by {', '.join(functions)}.",
        *left_out,
    ]
    inputs = PredictionTables(checkpoints, {}, **tables, notes=notes)
    _rate(inputs, functions, beams, "softmax")
    inputs.is_greedy = True
    return inputs


def _weighting(rows: pd.DataFrame, beams: bool | None) -> str:
    """Return how answers weigh; refuse answers that can be beams unless a strategy is given."""
    several = rows.duplicated([*BEAMS.file_columns, "question_id"]).any()
    if beams is None and several and can_be_beams(rows):
        raise UserTableError(
            "the answers to each question differ and their probabilities sum to at most 1, as "
            "in a beam search; give --beams if they are beams, which weigh by their "
            "log-probability, or --samples if they were drawn at random and weigh equally"
        )
    check_weights(rows, "beams" if beams else "sample")
    return "softmax" if beams else "equal"


def _labelled_by(lexical: int, n_groups: int) -> str:
    """Return the source of the labels.

    >>> _labelled_by(2, 8)
    'Labels of 2 of 8 groups of answers are matches with the references; the others were given.'
    """
    if lexical == n_groups:
        return "Labels are matches of the answers with the references."
    if not lexical:
        return "All labels came with the answers."
    return (
        f"Labels of {lexical:,} of {n_groups:,} groups of answers are matches with the "
        "references; the others were given."
    )


def _functions(
    names: Sequence[str], known_names: Collection[str], stated: Sequence[str]
) -> dict[str, str]:
    """Return the function of each estimator by its name; refuse unknown estimators."""
    if unknown := [name for name in names if name not in known_names]:
        raise ValueError(
            f"no estimator is {unknown[0]!r}; choose from {', '.join(known_names)}"
        )
    return {name: "stated" if name in stated else name for name in names}


def _can_rate(
    functions: Mapping[str, str], beams: pd.DataFrame, *, must: bool, is_deployed: bool = False
) -> tuple[dict[str, str], list[str]]:
    """Return the estimators that can rate the answers, as all of them `must`, and notes."""
    usable, left_out = {}, []
    for name, function in functions.items():
        needs = registration_of(function).needs
        try:
            if is_deployed and SEVERAL in needs and len(needs) > 1:
                raise ValueError(
                    f"{name} reads the deployed answer and the others together; leave it out"
                )
            for _, answers in beams.groupby(list(BEAMS.file_columns), sort=False):
                check_needs(name, needs, answers)
            usable[name] = function
        except ValueError as error:
            if must:
                raise
            left_out.append(f"Left out: {str(error).partition(';')[0]}.")
    return usable, left_out


def _is_first(beams: pd.DataFrame) -> pd.Series:
    """Return which beams are the first of a question."""
    question = [*BEAMS.file_columns, "question_id"]
    return beams["beam"] == beams.groupby(question, sort=False)["beam"].transform("min")


def _check_deployed(beams: pd.DataFrame, weighting: str) -> None:
    """Refuse answers if the others cannot rate the first one."""
    if weighting != "equal":
        raise UserTableError("--deployed first needs samples; leave out --beams")
    counts = beams.groupby([*BEAMS.file_columns, "question_id"], sort=False).size()
    if single := list(counts.index[counts < 2]):
        raise UserTableError(
            f"question {single[0][-1]!r} has one answer, but --deployed first needs samples "
            "after the deployed answer; add them, or leave the option out"
        )


def _cluster_deployed(clusters: pd.DataFrame, beams: pd.DataFrame) -> pd.DataFrame:
    """Make the first answer of each question the prediction, rated by the other answers.

    A cluster's probability becomes its share of the other answers. Questions with an empty
    first answer have no prediction.
    """
    first = _is_first(beams)
    deployed = beams[first].set_index("question_id")["text"].str.strip()
    samples = beams[~first].assign(text=beams["text"].map(normalise))
    rows = []
    for question, group in clusters.groupby("question_id", sort=False):
        answer = str(deployed[question])
        texts = samples.loc[samples["question_id"] == question, "text"]
        if not normalise(answer):
            continue
        entries = []
        for cluster in group.to_dict("records"):
            meanings = {normalise(text) for text in cluster["members"]}
            share, is_own = float(texts.isin(meanings).mean()), normalise(answer) in meanings
            new = {**cluster, "probability": share}
            if is_own:
                members = [member for member in cluster["members"] if member != answer]
                new |= {"answer": answer, "members": [answer, *members]}
            entries.append((not is_own, -share, new))
        entries.sort(key=lambda entry: entry[:2])
        rows += [new | {"cluster": number} for number, (*_, new) in enumerate(entries)]
    return pd.DataFrame(rows, columns=clusters.columns)


def _label(
    candidates: Parts,
    questions: pd.DataFrame,
    given: pd.DataFrame,
    weighting: str,
    is_deployed: bool,
    in_halves: bool = False,
) -> dict[str, pd.DataFrame]:
    """Group and label the answers of each checkpoint; return tables by name."""
    made: dict[str, Parts] = {"clusters": [], "labels": [], "answers": []}
    asked = {
        str(dataset): stack([(rows, {"dataset": str(dataset)})], QUESTIONS)
        for dataset, rows in questions.groupby("dataset", sort=False)
    }
    for beams, subject in candidates:
        questions_of = asked[subject["dataset"]]
        grouped = cluster_table(questions_of, beams, identical, weighting=weighting)
        if is_deployed:
            grouped = _cluster_deployed(grouped, beams)
        clusters = stack([(grouped, subject)], CLUSTERS)
        labels_of = given[given["dataset"] == subject["dataset"]]
        labels, answers = label_answers(
            questions_of, clusters, labels_of, Lexical().label, in_halves=in_halves
        )
        for name, table in (("clusters", grouped), ("labels", labels), ("answers", answers)):
            made[name].append((table, subject))
    tables = {name: stack(parts, TABLES[name]) for name, parts in made.items()}
    return {"questions": pd.concat(asked.values(), ignore_index=True), **tables}


def _rate(
    inputs: PredictionTables,
    functions: Mapping[str, str],
    beams: pd.DataFrame,
    weighting: str,
    *,
    is_deployed: bool = False,
    missing: str | None = None,
) -> None:
    """Add the predictions with each estimator's confidences; treat missing confidences."""
    unsaid: list[pd.DataFrame] = []
    for model, dataset in distinct_rows(inputs.answers, SUBJECT):
        subject = {"model": model, "dataset": dataset}
        names = inputs.checkpoints[model]
        for name, function in functions.items():
            read = beams
            if is_deployed:  # the deployed answer rates itself, or the others rate it
                read = beams[_is_first(beams) != (SEVERAL in registration_of(function).needs)]
            tables = AnswerTables(
                select_rows(inputs.questions, {"dataset": dataset}),
                select_rows(read, subject).reset_index(drop=True),
                select_rows(inputs.clusters, subject),
                select_rows(inputs.clusters, subject),
            )
            settings = Estimation(
                name,
                function,
                dataset,
                read=names,
                earlier=[],
                evaluation=names,
                equivalence={"backend": "lexical"},
                sampled=weighting == "equal",
                **registration_of(function).for_jobs(),
            )
            rated = estimate(settings, tables)
            lacking = rated[rated["unsaid"]]
            unsaid.append(lacking[["checkpoint", "question_id"]].assign(**subject))
            if missing not in (None, "drop"):
                rated.loc[rated["unsaid"], "confidence"] = float(missing)
            inputs.notes += [
                f"{name}: {n:,} answers of {model}, {checkpoint} to {dataset} state no "
                f"confidence and {_TREATED.get(missing, f'count as {missing}')}."
                for checkpoint, n in lacking.groupby("checkpoint", sort=False).size().items()
            ]
            answers = select_rows(inputs.answers, subject)
            rows = with_groups(join_predictions(answers, rated[RATED], name), tables.questions)
            inputs.predictions[model, dataset, name] = stack([(rows, subject)], PREDICTIONS)
    lacking = pd.concat(unsaid, ignore_index=True)
    if len(lacking) and missing is None:
        row = lacking.iloc[0]
        first = f"question {row['question_id']!r} of {row['dataset']} at {row['checkpoint']}"
        raise missing_error({"confidence": len(lacking)}, first=first)
    if len(lacking) and missing == "drop":
        _leave_out(inputs, lacking.drop_duplicates())


def _leave_out(inputs: PredictionTables, answers: pd.DataFrame) -> None:
    """Remove the answers of some checkpoints to some questions from all tables."""
    key = [*SUBJECT, "checkpoint", "question_id"]
    left_out = pd.MultiIndex.from_frame(answers[key])

    def keep(table: pd.DataFrame) -> pd.DataFrame:
        rows = pd.MultiIndex.from_frame(table[key].astype(str))
        return table[~rows.isin(left_out)].reset_index(drop=True)

    inputs.answers = keep(inputs.answers)
    inputs.clusters, inputs.labels = keep(inputs.clusters), keep(inputs.labels)
    inputs.predictions = {name: keep(table) for name, table in inputs.predictions.items()}
