"""Group, label and rate the answers of files, or the options of multiple choice."""

from collections.abc import Collection, Mapping, Sequence

import pandas as pd

from persistcal.answers.clusters import cluster_table, identical
from persistcal.answers.options import option_answers, scored_clusters
from persistcal.api.display import ESTIMATORS
from persistcal.api.inputs import (
    PLACE,
    PredictionTables,
    checkpoints_by_model,
    distinct_rows,
    select_rows,
    stack,
)
from persistcal.confidence.estimate import (
    NEITHER,
    RATED,
    AnswerTables,
    Estimation,
    estimate,
    join_predictions,
)
from persistcal.confidence.evidence import check_needs
from persistcal.confidence.registry import SEVERAL, registration_of
from persistcal.imports import answer_checks
from persistcal.imports.answer_checks import Wanted
from persistcal.imports.answers import (
    beam_table,
    check_stated,
    label_table,
    question_table,
    stated_names,
)
from persistcal.imports.options import ScoredOptions
from persistcal.judge.backends import Lexical
from persistcal.judge.run import label_answers
from persistcal.questions.labels import normalise
from persistcal.store import artifacts
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

TABLES = {
    "clusters": artifacts.CLUSTERS,
    "labels": artifacts.LABELS,
    "answers": artifacts.ANSWERS,
}
Parts = list[tuple[pd.DataFrame, dict[str, str]]]  # tables of one checkpoint and dataset

_NOTES = {
    "equal": "Answers are samples: every answer to a question counts equally.",
    "softmax": "Answers are beams: they weigh by the softmax of their log-probabilities.",
    "deployed": "The first answer to each question is the deployed one; the others rate it.",
}


def rate_answers(
    rows: pd.DataFrame, asked: Sequence[str], *, beams: bool | None, is_deployed: bool
) -> PredictionTables:
    """Group, label and rate tidy answers.

    `asked` are the estimators, by default the `USUAL` ones and all stated confidences. Answers
    are `beams` or samples; with None, answers that could be either are refused. If
    `is_deployed`, the first answer to each question is the deployed one, which the others rate.
    """
    checkpoints = checkpoints_by_model(rows)
    weighting, candidates = _weighting(rows, beams), beam_table(rows)
    distinct, needed = _requirements(checkpoints)
    answer_checks.check_answers(rows, checkpoints=distinct, needed=needed)
    questions, given = question_table(rows), label_table(rows)
    check_stated(rows, ESTIMATORS)
    stated = stated_names(rows)
    if is_deployed:
        _check_deployed(candidates, weighting)
    choices = [name for name in ESTIMATORS if name not in OF_OPTIONS] + stated
    functions = _functions(asked or [*USUAL, *stated], choices, stated)
    functions, left_out = _can_rate(
        functions, candidates, must=bool(asked), is_deployed=is_deployed
    )
    tables = _label(candidates, questions, given, weighting, is_deployed)
    lexical = int((tables["labels"]["source"] == "lexical").sum())
    notes = [
        _NOTES[weighting],
        *([_NOTES["deployed"]] if is_deployed else []),
        "Answers were grouped lexically: they mean the same if they differ only in case and "
        "full stops.",
        f"Of {len(tables['labels']):,} groups of answers {lexical:,} were labelled lexically, "
        "by a match with the references; the others by labels that came with them.",
        f"Rated by {', '.join(functions)}.",
        *left_out,
    ]
    inputs = PredictionTables(checkpoints, {}, **tables, notes=notes)
    read = {
        name: _deployed_or_others(candidates, function) if is_deployed else candidates
        for name, function in functions.items()
    }
    _rate_all(inputs, functions, read, is_sampled=weighting == "equal")
    return inputs


def rate_options(
    rows: pd.DataFrame, asked: Sequence[str], *, normalisation: str
) -> PredictionTables:
    """Rate the best option of each question; `rows` are scored options after `tidy_options`.

    `asked` are the estimators, by default "end_correct" and `OF_OPTIONS`.
    """
    checkpoints = checkpoints_by_model(rows)
    distinct, needed = _requirements(checkpoints)
    names = answer_checks.PLACE
    places = [dict(zip(names, place, strict=True)) for place in distinct_rows(rows, names)]
    datasets = [dataset for (dataset,) in distinct_rows(rows, ["dataset"])]
    scored = ScoredOptions(distinct, Wanted(datasets, places, needed, {}))
    scored.add(rows)
    scored.check(needed)
    questions = {subject["dataset"]: table for subject, table in scored.questions()}
    candidates: Parts = []
    made: dict[str, Parts] = {name: [] for name in TABLES}
    for place, options, scores in scored.scored():
        clusters = scored_clusters(options, scores)
        labels, answers = option_answers(questions[place["dataset"]], clusters)
        candidates.append((options, place))
        for name, table in (("clusters", clusters), ("labels", labels), ("answers", answers)):
            made[name].append((table, place))
    beams = stack(candidates, artifacts.BEAMS)
    functions = _functions(asked or ["end_correct", *OF_OPTIONS], ESTIMATORS, [])
    functions, left_out = _can_rate(functions, beams, must=bool(asked))
    notes = [
        f"Options are scored by their {SCORES[normalisation]}; the best one is the answer, and "
        "it is correct if it is the right option of the question.",
        f"Rated by {', '.join(functions)}.",
        *left_out,
    ]
    inputs = PredictionTables(
        checkpoints,
        {},
        questions=stack(
            [(table, {"dataset": name}) for name, table in questions.items()],
            artifacts.QUESTIONS,
        ),
        **{name: stack(parts, TABLES[name]) for name, parts in made.items()},
        notes=notes,
    )
    _rate_all(inputs, functions, dict.fromkeys(functions, beams), is_sampled=False)
    return inputs


def _requirements(
    checkpoints: Mapping[str, Sequence[str]],
) -> tuple[dict[str, dict[str, bool]], dict[str, dict[str, dict[str, str]]]]:
    """Return that no two checkpoints can be equal, and that each needs the split test."""
    distinct = {model: dict.fromkeys(names, False) for model, names in checkpoints.items()}
    needed = {
        model: {name: {"test": "evaluation"} for name in names}
        for model, names in checkpoints.items()
    }
    return distinct, needed


def _weighting(rows: pd.DataFrame, beams: bool | None) -> str:
    """Return how answers weigh; refuse answers that can be beams unless a strategy is given."""
    several = rows.duplicated([*answer_checks.PLACE, "question_id"]).any()
    if beams is None and several and answer_checks.can_be_beams(rows):
        raise UserTableError(
            "the answers to each question differ and their probabilities sum to at most 1, as "
            "in a beam search; give --beams if they are beams, which weigh by their "
            "log-probability, or --samples if they were drawn at random and weigh equally"
        )
    answer_checks.check_weights(rows, "beams" if beams else "sample")
    return "softmax" if beams else "equal"


def _functions(
    names: Sequence[str], known: Collection[str], stated: Sequence[str]
) -> dict[str, str]:
    """Return the function of each estimator by its name; refuse unknown estimators."""
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"no estimator is {unknown[0]!r}; choose from {', '.join(known)}")
    return {name: "stated" if name in stated else name for name in names}


def _can_rate(
    functions: Mapping[str, str], beams: pd.DataFrame, *, must: bool, is_deployed: bool = False
) -> tuple[dict[str, str], list[str]]:
    """Return the estimators that can rate the answers, and notes on the others.

    If all of them `must` rate, refuse answers without the input of one.
    """
    chosen, left_out = {}, []
    for name, function in functions.items():
        needs = registration_of(function).needs
        try:
            if is_deployed and SEVERAL in needs and len(needs) > 1:
                raise ValueError(
                    f"{name} reads the deployed answer and the others together; leave it out"
                )
            for _, answers in beams.groupby(list(artifacts.BEAMS.file_columns), sort=False):
                check_needs(name, needs, answers)
            chosen[name] = function
        except ValueError as error:
            if must:
                raise
            left_out.append(f"Left out: {str(error).partition(';')[0]}.")
    return chosen, left_out


def _is_first(beams: pd.DataFrame) -> pd.Series:
    """Return whether each beam is the first one of its question."""
    question = [*artifacts.BEAMS.file_columns, "question_id"]
    return beams["beam"] == beams.groupby(question, sort=False)["beam"].transform("min")


def _check_deployed(beams: pd.DataFrame, weighting: str) -> None:
    """Refuse answers if the others cannot rate the first one."""
    if weighting != "equal":
        raise UserTableError("--deployed first needs samples; leave out --beams")
    counts = beams.groupby([*artifacts.BEAMS.file_columns, "question_id"], sort=False).size()
    if single := list(counts.index[counts < 2]):
        raise UserTableError(
            f"question {single[0][-1]!r} has one answer, but --deployed first needs samples "
            "after the deployed answer; add them, or leave the option out"
        )


def _deployed_or_others(beams: pd.DataFrame, function: str) -> pd.DataFrame:
    """Return the answers that an estimator reads: the deployed one, or the samples after it."""
    several = SEVERAL in registration_of(function).needs
    return beams[_is_first(beams) != several]


def _cluster_deployed(clusters: pd.DataFrame, beams: pd.DataFrame) -> pd.DataFrame:
    """Make the first answer of each question the prediction, rated by the other answers.

    Both tables are of one checkpoint and dataset. A cluster's probability becomes its share of
    the other answers. Questions with an empty first answer have no prediction.
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
            is_own = normalise(answer) in meanings
            share = float(texts.isin(meanings).mean())
            members = [answer, *(m for m in cluster["members"] if m != answer)]
            changed = {"answer": answer, "members": members} if is_own else {}
            new = {str(name): value for name, value in cluster.items()} | changed
            entries.append((not is_own, -share, new | {"probability": share}))
        entries.sort(key=lambda entry: entry[:2])
        rows += [new | {"cluster": number} for number, (*_, new) in enumerate(entries)]
    return pd.DataFrame(rows, columns=clusters.columns)


def _label(
    beams: pd.DataFrame,
    questions: pd.DataFrame,
    given: pd.DataFrame,
    weighting: str,
    is_deployed: bool,
) -> dict[str, pd.DataFrame]:
    """Group and label the answers of each checkpoint; return tables by name."""
    made: dict[str, Parts] = {name: [] for name in TABLES}
    asked = {
        str(dataset): stack([(rows, {"dataset": str(dataset)})], artifacts.QUESTIONS)
        for dataset, rows in questions.groupby("dataset", sort=False)
    }
    for place, rows in beams.groupby(list(artifacts.BEAMS.file_columns), sort=False):
        subject = dict(zip(artifacts.BEAMS.file_columns, map(str, place), strict=True))
        questions_of = asked[subject["dataset"]]
        grouped = cluster_table(questions_of, rows, identical, weighting=weighting)
        if is_deployed:
            grouped = _cluster_deployed(grouped, rows)
        clusters = stack([(grouped, subject)], artifacts.CLUSTERS)
        labels_of = given[given["dataset"] == subject["dataset"]]
        labels, answers = label_answers(questions_of, clusters, labels_of, Lexical().label)
        for name, table in (("clusters", grouped), ("labels", labels), ("answers", answers)):
            made[name].append((table, subject))
    return {
        "questions": pd.concat(asked.values(), ignore_index=True),
        **{name: stack(parts, TABLES[name]) for name, parts in made.items()},
    }


def _rate_all(
    inputs: PredictionTables,
    functions: Mapping[str, str],
    read: Mapping[str, pd.DataFrame],
    *,
    is_sampled: bool,
) -> None:
    """Add the predictions with each estimator's confidences; note missing confidences.

    `read` contains the answers that each estimator reads.
    """
    for model, dataset in distinct_rows(inputs.answers, PLACE):
        place = {"model": model, "dataset": dataset}
        for name, function in functions.items():
            settings = Estimation(
                name,
                function,
                dataset,
                read=inputs.checkpoints[model],
                earlier=[],
                evaluation=inputs.checkpoints[model],
                equivalence={"backend": "lexical"},
                sampled=is_sampled,
            )
            rated = _rate(settings, inputs, read[name], place)
            inputs.predictions[model, dataset, name] = stack(
                [(rated, place)], artifacts.PREDICTIONS
            )


def _rate(
    settings: Estimation, inputs: PredictionTables, beams: pd.DataFrame, place: dict[str, str]
) -> pd.DataFrame:
    """Return the predictions of one model and dataset with an estimator's confidences."""
    asked = select_rows(beams, place).groupby("checkpoint", sort=False)
    by_checkpoint = [(rows, {**place, "checkpoint": str(name)}) for name, rows in asked]
    tables = AnswerTables(
        select_rows(inputs.questions, {"dataset": settings.dataset}),
        stack(by_checkpoint, artifacts.BEAMS),
        select_rows(inputs.clusters, place),
        select_rows(inputs.answers, place),
    )
    rated = estimate(settings, tables)
    lacking = rated[rated["unsaid"]].groupby("checkpoint", sort=False).size()
    inputs.notes += [
        f"{settings.estimator}: {n:,} answers of {place['model']}, {name} to "
        f"{place['dataset']} state no confidence and count as {NEITHER:g}."
        for name, n in lacking.items()
    ]
    predicted = tables.predictions(settings.evaluation, "test")
    return join_predictions(predicted, rated[RATED], settings.estimator)
