"""The options for reading files: a field has an option's help and uses.

The command derives its options from the fields, so this module imports nothing heavy.
"""
# ruff: noqa: RUF009  # fields are made by a function

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from persistcal.readers.scales import Scale

PREDICTIONS, ANSWERS, OPTIONS = "predictions", "answers", "scored options"  # kinds of files
RATED = (ANSWERS, OPTIONS)  # kinds that estimators rate


def _option(
    default: Any,  # noqa: ANN401
    text: str = "",
    *,
    flags: Mapping[str, str] | None = None,
    kinds: Sequence[str] = (PREDICTIONS, *RATED),
    is_for_logs: bool = True,
    **settings: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return a field with an option of the help `text`, or one for each of `flags`.

    The option is for files of `kinds`, and for logs if `is_for_logs`. `settings` are arguments
    of `click.option`.
    """
    use = {"kinds": kinds, "is_for_logs": is_for_logs, "settings": settings}
    given = {"default_factory": dict} if default == {} else {"default": default}
    return field(**given, metadata=use | {"text": text, "flags": flags})


@dataclass(frozen=True)
class Reading:
    """Options for reading files."""

    labels: str | None = _option(
        None, "'log': the label is the score of a log; else a lexical match.", kinds=RATED
    )
    filter: str | None = _option(
        None, "Filter of lm-evaluation-harness whose output is the answer.", kinds=[ANSWERS]
    )
    estimators: Sequence[str] = _option(
        (), flags={"--estimator": "Rates the answers; several can be given."}, multiple=True
    )
    beams: bool | None = _option(
        None,
        flags={
            "--beams/--samples": "Whether several answers to a question are beams, which weigh "
            "by their log-probability, or samples, which weigh equally."
        },
        kinds=[ANSWERS],
    )
    columns: Mapping[str, str] = _option(
        {},
        "Names of columns in the files, such as confidence=conf correct=is_correct.",
        kinds=[PREDICTIONS, ANSWERS],
        is_for_logs=False,
        metavar="COLUMN=NAME…",
    )
    names: Sequence[str] = _option(
        (), "Names of the checkpoints, after the files.", metavar="NAME…"
    )
    deployed: str | None = _option(
        None,
        "'first': the first answer to each question is the deployed one, and the other "
        "samples rate it.",
        kinds=[ANSWERS],
        type=["first"],
    )
    scale: "Scale | None" = _option(
        None,
        flags={
            "--scale": "Scale of the confidences: its greatest value, or 1:5 for 1 to 5.",
            "--words": "CSV file with word and confidence, for confidences in words.",
            "--uncertainty": "The confidence is 1 minus this column.",
        },
        kinds=[PREDICTIONS, ANSWERS],
        is_for_logs=False,
    )
    missing: str | None = _option(
        None,
        "'drop' leaves out answers without a confidence or a label; 0.5 or another number "
        "counts as a missing confidence.",
        kinds=[PREDICTIONS, ANSWERS],
    )
    by: Sequence[str] = _option(
        (),
        "Columns of the files, such as topic: the verdict also has each slice of questions.",
        kinds=[PREDICTIONS, ANSWERS],
        is_for_logs=False,
        metavar="COLUMN…",
    )
    pool: bool = _option(False, "All logs of a folder are one dataset.", is_flag=True)
    scorer: str | None = _option(
        None, "Scorer of Inspect whose score is the label.", kinds=[ANSWERS]
    )
    errored: str | None = _option(
        None,
        "Samples of Inspect that ended with an error: 'drop' leaves the question out, "
        "'incorrect' counts them as wrong.",
        kinds=[ANSWERS],
        type=["drop", "incorrect"],
    )
    again: Sequence[str] = _option(
        (),
        "Files of a second ask of the same questions, in the same order: claims then rest on "
        "cross-asking. With some versions, or at most half of the questions (50 to 200), they "
        "measure how many answers flip by themselves.",
        metavar="FILE…",
    )
    greedy: bool | None = _option(
        None,
        "The answers are deterministic (greedy, or of temperature 0), so that none differs by "
        "chance.",
        is_flag=True,
    )
    halvings: int | None = _option(
        None,
        "How often samples are halved at random, which makes two asks: 1 to 20, usually 20.",
        kinds=[ANSWERS],
        metavar="N",
        type=int,
    )
    stated: bool = _option(
        False,
        "Replies state a confidence as 'Confidence: 85%', as Humanity's Last Exam asks.",
        kinds=[ANSWERS],
        is_flag=True,
    )
    normalisation: str | None = _option(
        None,
        "Score of the options of multiple choice: none (log-probability), per_token, "
        "per_character or unconditional.",
        kinds=[OPTIONS],
        metavar="SCORE",
        type=["none", "per_token", "per_character", "unconditional"],
    )
    is_unlabelled: bool = False  # whether the last version has no labels: a sheet is for them
    is_crossed: bool = True  # whether samples make two asks; thresholds are about one


USUAL = Reading()
