"""Judge candidates by a paid model, nothing twice, and by a person where that fails."""

import logging
from collections.abc import Callable, Sequence

import pandas as pd

from persistcal.answers.clusters import (
    doubts_of_form,
    label_predictions,
    take_answers,
    warn_if_none_is_correct,
)
from persistcal.answers.options import has_options, option_labels
from persistcal.judge import human_labels
from persistcal.judge.messages import (
    Asked,
    Candidate,
    JudgeSettings,
    Label,
    Replies,
    candidate_id,
    candidate_of,
    requests_about,
)
from persistcal.questions.labels import NOT_ATTEMPTED, JudgeError, normalise
from persistcal.server.spending import Body, ServerError
from persistcal.store.artifacts import ANSWERS

log = logging.getLogger(__name__)

Judge = Callable[[Sequence[Asked]], Sequence[Label]]


def judge_candidates(
    candidates: Sequence[Candidate],
    folder: str,
    settings: JudgeSettings,
    *,
    noted: str,
    in_batches: bool = False,
) -> list[Label]:
    """Return the label of each of `candidates`, all of one checkpoint, with its source.

    The source is "human", the judge's model, or "queue" for a candidate that waits for a person
    and counts as "not_attempted", if the settings allow a job to continue. `folder` contains
    the replies, batches, queue and ledger of all jobs of a study. `noted` is this job's file
    for `note_consulted`. The API key is needed only for new requests, which are sent together
    if they are `in_batches`.
    """
    queue = f"{folder}/queue.csv"
    distinct = {candidate_id(candidate): candidate for candidate in candidates}
    human = human_labels.read_human_labels(queue, distinct)
    requests = {
        key: (body, group)
        for key, (body, group) in requests_about(distinct.values(), settings).items()
        if not human.keys() >= set(map(candidate_id, group))
    }
    kept = Replies(folder, settings.labels)
    replies = kept.present(requests)
    missing = {key: body for key, (body, _) in requests.items() if key not in replies}
    log.info(
        "%d candidates, %d distinct, %d labelled by a person: %d requests, %d of them new",
        *(len(candidates), len(distinct), len(human.keys() & distinct.keys())),
        *(len(requests), len(missing)),
    )
    if missing:
        _ask(missing, folder, settings, in_batches=in_batches)
        replies |= kept.present(missing)

    decided, waiting = {}, {}
    for key, (_, group) in requests.items():
        labels, reason, text = replies[key]
        for candidate, label in zip(group, labels, strict=True):
            number = candidate_id(candidate)
            if label:
                decided[number] = (label, settings.model)
            elif number not in human:
                waiting[number] = human_labels.Unresolved(candidate, reason, text)
    decided |= {number: (label, "human") for number, label in human.items()}
    consulted = [number for number in distinct if number in human or number in waiting]
    human_labels.note_consulted(
        noted, {number: human.get(number, "") for number in consulted}, distinct
    )
    if waiting:
        human_labels.append_unresolved(queue, waiting.values())
        _say_who_waits(len(waiting), queue, settings)
    return [
        decided.get(candidate_id(candidate), (NOT_ATTEMPTED, "queue"))
        for candidate in candidates
    ]


def correct_labels(
    rows: Sequence[Asked], labels: Sequence[Label], folder: str, *, noted: str
) -> list[Label]:
    """Return the labels of a match, or of a person where the queue in `folder` has one.

    `noted` is as for `judge_candidates`.
    """
    candidates = [candidate_of(*row) for row in rows]
    numbers = [candidate_id(candidate) for candidate in candidates]
    human = human_labels.read_human_labels(
        f"{folder}/queue.csv", dict(zip(numbers, candidates, strict=True))
    )
    human_labels.note_consulted(noted, {n: human[n] for n in numbers if n in human}, numbers)
    return [
        (human[number], "human") if number in human else label
        for number, label in zip(numbers, labels, strict=True)
    ]


def label_answers(
    questions: pd.DataFrame,
    clusters: pd.DataFrame,
    given: pd.DataFrame,
    ask: Judge,
    *,
    in_halves: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the labels of candidate answers, and the predictions with their labels.

    `ask` labels the answers without a `given` label. Options of multiple choice need no judge,
    because the right option is known. Signs of another form of answers are logged, but not
    again for answers `in_halves`.
    """
    table = questions.set_index("question_id")
    texts = table.loc[clusters["question_id"], ["question", "references"]]
    rows = list(zip(texts["question"], texts["references"], clusters["answer"], strict=True))
    if has_options(questions):
        sourced = option_labels(questions, clusters)
    else:
        labels_given = given.set_index(["question_id", "answer"])["label"].to_dict()
        keys = zip(clusters["question_id"], map(normalise, clusters["answer"]), strict=True)
        given_before = [labels_given.get(key) for key in keys]
        unknown = [row for row, label in zip(rows, given_before, strict=True) if label is None]
        replies = iter(ask(unknown))
        sourced = [(label, "given") if label else next(replies) for label in given_before]
    labels = clusters[["question_id", "cluster"]].assign(
        label=[label for label, _ in sourced], source=[source for _, source in sourced]
    )
    answers = label_predictions(take_answers(questions, clusters), labels)
    answers = answers[ANSWERS.schema.names]
    log.info("Labels: %s", labels["label"].value_counts().to_dict())
    if len(answers):
        percent = 100 * answers["correct"].mean()
        log.info("%.0f %% of %d answers are correct", percent, len(answers))
    if not in_halves:
        warn_if_none_is_correct(answers["correct"], "answers")
        for doubt in doubts_of_form(table["references"], clusters, labels):
            log.warning("%s", doubt)
    return labels, answers


def _say_who_waits(n: int, queue: str, settings: JudgeSettings) -> None:
    message = f"{n} answers wait for a person" if n > 1 else "1 answer waits for a person"
    remedy = (
        f"fill in the column label of {queue} (correct, incorrect or not_attempted) and run "
        "again"
    )
    if settings.undecided == "stop":
        raise JudgeError(
            f"{message}: {remedy}; all that the judge has replied is kept and not paid again. "
            "To go on without them as not attempted, set judge.undecided to not_attempted."
        )
    log.warning("%s and count as not attempted until then: %s.", message, remedy)


def _ask(
    missing: dict[str, Body], folder: str, settings: JudgeSettings, *, in_batches: bool
) -> None:
    try:
        from persistcal.judge.asking import ask_in_batches, ask_one_by_one
        from persistcal.server.client import ModelServer
    except ImportError as error:
        raise JudgeError(
            f"judge.backend {settings.backend} needs the package {error.name}: "
            "pip install openai tenacity"
        ) from None
    ask = ask_in_batches if in_batches else ask_one_by_one
    try:
        server = ModelServer(settings.base_url, settings, section="judge", kept="Labels")
        ask(server, missing, folder, settings)
    except ServerError as error:
        raise JudgeError(str(error)) from error
