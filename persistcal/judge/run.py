"""Judge candidates by a paid model, nothing twice, and by a person where that fails."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd

from persistcal.answers.clusters import (
    label_predictions,
    take_predictions,
    warn_if_none_is_correct,
)
from persistcal.answers.options import has_options, option_labels
from persistcal.judge.backends import Asked, Label, server_backend
from persistcal.judge.human_labels import (
    Unresolved,
    append_unresolved,
    note_consulted,
    read_human_labels,
)
from persistcal.judge.prompt import Candidate, JudgeSettings, candidate_id, requests_about
from persistcal.judge.reply import Replies, Reply
from persistcal.questions.labels import (
    NOT_ATTEMPTED,
    JudgeError,
    normalise,
)
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
    api_key: str,
) -> list[tuple[str, str]]:
    """Return the label of each of `candidates`, all of one checkpoint, with its source.

    The source is "human", the judge's model, or "queue" for a candidate that waits for a person
    and counts as "not_attempted", if the settings allow a job to continue. `folder` contains
    the replies, batches, queue and ledger of all jobs of a study. `noted` is this job's file
    for `note_consulted`. The API key is needed only for new requests.
    """
    queue = f"{folder}/queue.csv"
    human = read_human_labels(queue)
    distinct = {candidate_id(candidate): candidate for candidate in candidates}
    requests = {
        key: (body, group)
        for key, (body, group) in requests_about(distinct.values(), settings).items()
        if not human.keys() >= set(map(candidate_id, group))
    }
    replies = _look_up(folder, requests)
    missing = {key: body for key, (body, _) in requests.items() if key not in replies}
    log.info(
        "%d candidates, %d distinct, %d labelled by a person: %d requests, %d of them new",
        *(len(candidates), len(distinct), len(human.keys() & distinct.keys())),
        *(len(requests), len(missing)),
    )
    if missing:
        _ask(missing, folder, settings, api_key)
        replies |= _look_up(folder, missing)

    decided, waiting = {}, {}
    for key, (_, group) in requests.items():
        labels, reason, text = replies[key]
        for candidate, label in zip(group, labels, strict=True):
            number = candidate_id(candidate)
            if label:
                decided[number] = (label, settings.model)
            elif number not in human:
                waiting[number] = Unresolved(candidate, reason, text)
    decided |= {number: (label, "human") for number, label in human.items()}
    consulted = [number for number in distinct if number in human or number in waiting]
    note_consulted(noted, {number: human.get(number, "") for number in consulted})
    if waiting:
        append_unresolved(queue, waiting.values())
        _say_who_waits(len(waiting), queue, settings)
    return [
        decided.get(candidate_id(candidate), (NOT_ATTEMPTED, "queue"))
        for candidate in candidates
    ]


def given_labels(clusters: pd.DataFrame, given: pd.DataFrame) -> list[str | None]:
    """Return the given label of each cluster's answer, or None."""
    keys = zip(given["question_id"], given["answer"], strict=True)
    labels = dict(zip(keys, given["label"], strict=True))
    answers = zip(clusters["question_id"], map(normalise, clusters["answer"]), strict=True)
    return [labels.get(key) for key in answers]


def label_answers(
    questions: pd.DataFrame, clusters: pd.DataFrame, given: pd.DataFrame, ask: Judge
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the labels of candidate answers, and the predictions with their labels.

    `ask` labels the answers without a `given` label. Options of multiple choice need no judge,
    because the right option is known.
    """
    table = questions.set_index("question_id")
    asked = table.loc[clusters["question_id"], ["question", "references"]]
    rows = list(zip(asked["question"], asked["references"], clusters["answer"], strict=True))
    if has_options(questions):
        sourced = option_labels(questions, clusters)
    else:
        given_before = given_labels(clusters, given)
        unknown = [row for row, label in zip(rows, given_before, strict=True) if label is None]
        replies = iter(ask(unknown))
        sourced = [(label, "given") if label else next(replies) for label in given_before]
    labels = clusters[["question_id", "cluster"]].assign(
        label=[label for label, _ in sourced], source=[source for _, source in sourced]
    )
    predictions = pd.concat(
        take_predictions(questions, clusters, split=split).assign(split=split)
        for split in ("train", "test")
    )
    answers = label_predictions(predictions, labels)[ANSWERS.schema.names]
    log.info("Labels: %s", labels["label"].value_counts().to_dict())
    for split, correct in answers.groupby("split")["correct"]:
        percent = 100 * correct.mean()
        log.info("%.0f %% of %d %s answers are correct", percent, len(correct), split)
    warn_if_none_is_correct(answers["correct"], "answers")
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


def _look_up(folder: str, keys: Iterable[str]) -> dict[str, Reply]:
    kept = Replies(folder)
    kept_replies = {key: kept.get(key) for key in keys}
    return {key: reply for key, reply in kept_replies.items() if reply}


def _ask(missing: dict[str, Body], folder: str, settings: JudgeSettings, api_key: str) -> None:
    send = server_backend(settings.backend).send
    how: dict[str, Any] = {"section": "judge", "kept": "Labels"}
    try:
        from persistcal.server.client import ModelServer

        server = ModelServer(settings.base_url, api_key.strip(), settings, **how)
        send(server, missing, folder, settings)
    except ImportError as error:
        raise JudgeError(
            f"judge.backend {settings.backend} needs the package {error.name}: "
            "pip install openai tenacity"
        ) from None
    except ServerError as error:
        raise JudgeError(str(error)) from error
