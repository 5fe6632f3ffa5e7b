"""The command `persistcal`: options, help and exit codes.

Exit codes: 0 for a result, 1 for invalid files or numbers, with one sentence, and 2 for an
invalid command.
"""

import inspect
import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from persistcal.evaluation.settings import MIN_REPLICATES, EvaluationSettings

# Each command imports what it needs itself, so that help and errors come at once.
if TYPE_CHECKING:
    import pandas as pd

    from persistcal.api.display import Comparison
    from persistcal.api.evaluate import Step
    from persistcal.api.files import Reading
    from persistcal.api.inputs import PredictionTables
    from persistcal.evaluation import power

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Does a language model's confidence follow its knowledge as the knowledge changes?",
)

Files = Annotated[
    list[str],
    typer.Argument(
        help="Answers or predictions (CSV, TSV, JSON, parquet, also with .gz), logs of "
        "lm-evaluation-harness (samples_*.jsonl) or Inspect (.eval, .json), in the order of "
        "the checkpoints; a folder, or a pattern in quotes, is a version with a log per task; "
        "- is standard input. A checkpoint's name is the column `checkpoint`, "
        "--names, or the part in which the names of the files differ."
    ),
]
MinContrast = Annotated[
    int, typer.Option(min=1, help="Smaller contrast sets are left out of the means.")
]
MinDirection = Annotated[
    int,
    typer.Option(
        min=1,
        help="Questions that a pair needs to gain, and to lose, for intervals of metrics that "
        "rest on both.",
    ),
]
Replicates = Annotated[int, typer.Option(min=MIN_REPLICATES, help="Bootstrap replicates.")]
Precision = Annotated[
    float, typer.Option(help="Share of correct answers above the threshold, such as 0.9.")
]
Delta = Annotated[
    float, typer.Option(help="Probability that a selected threshold misses the precision.")
]
ComparedPairs = Annotated[
    list[str] | None,
    typer.Option(
        "--pairs",
        metavar="PAIRS",
        help="Pairs of checkpoints that are compared: all, adjacent, first, or v1:v2 …",
    ),
]
FailIf = Annotated[
    str | None,
    typer.Option(
        help="Release gate: 'broken' exits with 3 if a threshold is broken; 'undecided' exits "
        "with 4, too, if a verdict is undecided or missing."
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")]
# The options of `Reading`, which all commands that read files share
SHARED: dict[str, Any] = {
    "labels": Annotated[
        str | None,
        typer.Option(help="'log': the label is the score of a log; else a lexical match."),
    ],
    "filter": Annotated[
        str | None,
        typer.Option(help="Filter of lm-evaluation-harness whose output is the answer."),
    ],
    "estimators": Annotated[
        list[str] | None,
        typer.Option("--estimator", help="Rates the answers; several can be given."),
    ],
    "beams": Annotated[
        bool | None,
        typer.Option(
            "--beams/--samples",
            help="Whether several answers to a question are beams, which weigh by their "
            "log-probability, or samples, which weigh equally.",
        ),
    ],
    "columns": Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=NAME…",
            help="Names of columns in the files, such as confidence=conf correct=is_correct.",
        ),
    ],
    "names": Annotated[
        list[str] | None,
        typer.Option(metavar="NAME…", help="Names of the checkpoints, after the files."),
    ],
    "deployed": Annotated[
        str | None,
        typer.Option(
            help="'first': the first answer to each question is the deployed one, and the "
            "other samples rate it."
        ),
    ],
    "scale": Annotated[
        str | None,
        typer.Option(help="Scale of the confidences: its greatest value, or 1:5 for 1 to 5."),
    ],
    "words": Annotated[
        str | None,
        typer.Option(help="CSV file with word and confidence, for confidences in words."),
    ],
    "uncertainty": Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The confidence is 1 minus this column."),
    ],
    "missing": Annotated[
        str | None,
        typer.Option(
            help="'drop' leaves out answers without a confidence or a label; 0.5 or another "
            "number counts as a missing confidence."
        ),
    ],
    "pool": Annotated[
        bool | None,
        typer.Option("--pool", help="All logs of a folder are one dataset."),
    ],
    "scorer": Annotated[
        str | None, typer.Option(help="Scorer of Inspect whose score is the label.")
    ],
    "errored": Annotated[
        str | None,
        typer.Option(
            help="Samples of Inspect that ended with an error: 'drop' leaves the question out, "
            "'incorrect' counts them as wrong."
        ),
    ],
    "again": Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE…",
            help="Files of a second ask of the same questions, in the same order: claims then "
            "rest on cross-asking.",
        ),
    ],
    "greedy": Annotated[
        bool | None,
        typer.Option(
            "--greedy",
            help="The answers are deterministic (greedy, or of temperature 0), so that none "
            "differs by chance.",
        ),
    ],
    "texts": Annotated[
        str | None,
        typer.Option(
            help="For `threshold --sheet`: a file with the texts of predictions, with "
            "question_id and any of question, references and answer."
        ),
    ],
    "normalisation": Annotated[
        str | None,
        typer.Option(
            help="Score of the options of multiple choice: none (log-probability), per_token, "
            "per_character or unconditional."
        ),
    ],
}
# The options of `EvaluationSettings`, with their defaults
SETTINGS: dict[str, tuple[Any, Any]] = {
    "precision": (Precision, EvaluationSettings.precision),
    "delta": (Delta, EvaluationSettings.delta),
    "pairs": (ComparedPairs, None),
    "min_contrast": (MinContrast, EvaluationSettings.min_contrast),
    "min_direction": (MinDirection, EvaluationSettings.min_direction),
    "replicates": (Replicates, EvaluationSettings.n_replicates),
    "seed": (Seed, EvaluationSettings.seed),
}
SEVERAL = (
    "--names",
    "--columns",
    "--pairs",
    "--sheet",
    "--again",
)  # options that take all words up to the next option


def reads_files(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `SHARED`, which it receives as its parameter `reading`.

    A command with a parameter `settings` also has the options of `SETTINGS`.
    """
    parameters = inspect.signature(command).parameters
    groups = {name: group for name, group in GROUPS.items() if name in parameters}
    own = [p.replace(kind=KEYWORD) for p in parameters.values() if p.name not in groups]
    shared = [
        inspect.Parameter(name, KEYWORD, default=default, annotation=kind)
        for group, _ in groups.values()
        for name, (kind, default) in group.items()
    ]

    def call(**given: Any) -> None:  # noqa: ANN401
        made = {
            name: make(**{option: given.pop(option) for option in group})
            for name, (group, make) in groups.items()
        }
        command(**made, **given)

    call.__name__, call.__doc__ = command.__name__, command.__doc__
    call.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in [*own, *shared]}
    return call


def _reading(**options: Any) -> "Reading":  # noqa: ANN401
    """Return the options of a command as `Reading`."""
    from persistcal.api.files import Reading
    from persistcal.api.rating import SCORES
    from persistcal.imports.scales import PROBABILITIES, parse_scale

    columns: dict[str, str] = {}
    for word in options.pop("columns") or []:
        column_name, is_pair, column = word.partition("=")
        if not (column_name and is_pair and column):
            raise typer.BadParameter(f"--columns is {word!r}; write it as confidence=conf.")
        if columns.setdefault(column_name, column) != column:
            raise typer.BadParameter(f"--columns gives {column_name} twice; keep one.")
    uncertainty = options.pop("uncertainty")
    if uncertainty and columns.setdefault("confidence", uncertainty) != uncertainty:
        raise typer.BadParameter("--uncertainty and --columns name two columns; keep one.")
    try:
        scale = parse_scale(
            options.pop("scale"), options.pop("words"), is_uncertainty=bool(uncertainty)
        )
    except OSError as error:
        raise ValueError(f"--words {error.filename}: {error.strerror}.") from None
    missing = options["missing"]
    if missing not in (None, "drop") and not 0 <= PROBABILITIES.number(missing) <= 1:
        raise typer.BadParameter(f"--missing is {missing!r}; give 'drop', or a number to 1.")
    if options["errored"] not in (None, "drop", "incorrect"):
        raise typer.BadParameter(
            f"--errored is {options['errored']!r}, and can be 'drop' or 'incorrect'."
        )
    if options["deployed"] not in (None, "first"):
        raise typer.BadParameter(f"--deployed is {options['deployed']!r}, and can be 'first'.")
    if options["normalisation"] not in (None, *SCORES):
        raise typer.BadParameter(
            f"--normalisation is {options['normalisation']!r}, and can be {', '.join(SCORES)}."
        )
    given = {name: value for name, value in options.items() if value is not None}
    return Reading(columns=columns, scale=scale, **given)


def _settings(pairs: Sequence[str] | None, **numbers: Any) -> EvaluationSettings:  # noqa: ANN401
    """Return the options of `SETTINGS` as `EvaluationSettings`."""
    from persistcal.api.inputs import make_settings

    n_replicates = numbers.pop("replicates")
    return make_settings(pairs=_pairs(pairs), n_replicates=n_replicates, **numbers)


def _pairs(words: Sequence[str] | None) -> Any:  # noqa: ANN401
    """Return the pairs of checkpoints that the option `--pairs` names.

    >>> _pairs(None), _pairs(["adjacent"]), _pairs(["v1:v3", "v2:v3"])
    ('all', 'adjacent', [('v1', 'v3'), ('v2', 'v3')])
    """
    if not words or (len(words) == 1 and words[0] in ("all", "adjacent", "first")):
        return words[0] if words else "all"
    named = [tuple(word.split(":")) for word in words]
    for word, pair in zip(words, named, strict=True):
        if len(pair) != 2 or not all(pair):
            raise typer.BadParameter(
                f"--pairs is {word!r}; give all, adjacent, first, or pairs such as v1:v2."
            )
    return named


KEYWORD = inspect.Parameter.KEYWORD_ONLY
# Parameters that stand for a group of options: each with its default, and what is made of them
GROUPS: dict[str, tuple[dict[str, tuple[Any, Any]], Callable[..., Any]]] = {
    "reading": ({name: (kind, None) for name, kind in SHARED.items()}, _reading),
    "settings": (SETTINGS, _settings),
}


@app.command(
    epilog="For example:\n\n"
    "`persistcal compare early.jsonl late.jsonl --precision 0.8`\n\n"
    "`persistcal compare step1/samples_quiz.jsonl step2/samples_quiz.jsonl --labels log`\n\n"
    "`persistcal compare a.csv b.csv --columns confidence=conf correct=right --names v1 v2`\n\n"
    "`persistcal compare v1a.jsonl v2a.jsonl --again v1b.jsonl v2b.jsonl`\n\n"
    "`zcat predictions.csv.gz | persistcal compare - --out out --min-contrast 50`\n\n"
)
@reads_files
def compare(
    files: Files,
    reading: "Reading",
    settings: EvaluationSettings,
    out: Annotated[str, typer.Option(help="Folder of the results.")] = "comparison",
    fail_if: FailIf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print also all findings and a table of metrics.")
    ] = False,
) -> None:
    """Compare checkpoints and estimators: a verdict, metrics, tests and the page.

    The verdict answers whether accuracy changed, whether confidence followed, whether it is
    calibrated at the later checkpoint, and whether a threshold keeps its precision. Into the
    folder `--out` go metrics.csv, significance.csv, intervals.csv, claims.csv,
    contrast_sets.csv, states.csv, trends.csv, pairs.csv, min_contrast.csv, thresholds.csv,
    threshold_cells.csv, confident_regressions.csv, selective.csv and report/index.html.
    """
    from persistcal.report.threshold_views import exit_code
    from persistcal.store.files import write_whole

    _check_gate(fail_if)
    _check_out(out, out)
    comparison, page = _compare(files, reading, settings)
    paths = _write_tables(comparison.tables, out)
    report = str(Path(out, "report", "index.html"))
    write_whole(report, page)
    if as_json:
        written = {"page": report, "tables": paths}
        typer.echo(
            json.dumps(comparison.verdict_record() | written, indent=2, ensure_ascii=False)
        )
    else:
        text = comparison.verdict(" ".join(files))
        if verbose:
            text += f"\n{comparison.summary()}"
        typer.echo(f"{text}\nPage: {report}\nTables: {', '.join(paths)}")
    if code := exit_code(comparison.tables["thresholds"], fail_if):
        raise typer.Exit(code)


@app.command(epilog="For example:\n\n`persistcal metrics early.csv late.csv > metrics.csv`\n\n")
@reads_files
def metrics(
    files: Files,
    reading: "Reading",
    min_contrast: MinContrast = EvaluationSettings.min_contrast,
) -> None:
    """Print every metric as CSV, as in `metrics.csv` of `compare`, without tests."""
    from persistcal.api.evaluate import compute_metrics
    from persistcal.api.inputs import make_settings

    settings = make_settings(min_contrast=min_contrast)
    inputs = _read(files, reading)
    with _bar(len(inputs.predictions)) as step:
        metrics = compute_metrics(inputs, settings, step)
    for line in inputs.assumptions(settings):
        typer.echo(line, err=True)
    typer.echo(metrics.to_csv(index=False), nl=False)


@app.command(
    epilog="For example:\n\n`persistcal page early.jsonl late.jsonl --out page.html`\n\n"
)
@reads_files
def page(
    files: Files,
    reading: "Reading",
    settings: EvaluationSettings,
    out: Annotated[str, typer.Option(help="The page, one HTML file.")] = "page.html",
) -> None:
    """Write only the page: findings, charts, and all answers."""
    from persistcal.store.files import write_whole

    _check_out(out, str(Path(out).parent))
    comparison, text = _compare(files, reading, settings)
    write_whole(out, text)
    typer.echo("\n".join([*comparison.inputs.assumptions(settings), f"Page: {out}"]))


@app.command(
    epilog="For example:\n\n"
    "`persistcal plan --questions 5000 --changed 700 300 --difference 0.05`\n\n"
    "`persistcal plan --questions 5000 --results comparison 800`\n\n"
)
def plan(
    questions: Annotated[
        int,
        typer.Option(
            min=2, help="Questions that the study asks; of those about one fact count one."
        ),
    ],
    changed: Annotated[
        tuple[int, int] | None,
        typer.Option(
            metavar="GAINED LOST",
            help="Questions that the later checkpoint is expected to gain and lose (default: a "
            "tenth each).",
        ),
    ] = None,
    accuracy: Annotated[float, typer.Option(help="Of the earlier checkpoint.")] = 0.5,
    agreement: Annotated[float, typer.Option(help="Share of equal signs on those.")] = 0.7,
    auc: Annotated[float, typer.Option(help="Approximate contrast AUC.")] = 0.65,
    estimators: Annotated[
        int,
        typer.Option(
            min=2,
            help="Estimators that are compared with each other.",
        ),
    ] = 2,
    difference: Annotated[
        float | None, typer.Option(help="Print also how many questions find this.")
    ] = None,
    results: Annotated[
        tuple[str, int] | None,
        typer.Option(
            metavar="FOLDER ASKED",
            help="Take the errors of a finished study, and how many questions it asked.",
        ),
    ] = None,
) -> None:
    """Print the differences that a study could find, before it is run."""
    from persistcal.evaluation import power

    if questions > power.MOST_QUESTIONS:
        raise typer.BadParameter(
            f"--questions is {questions:,}; give at most {power.MOST_QUESTIONS:,}."
        )
    if results:
        lines = _plan_from_results(*results, questions, difference)
    else:
        gained, lost = changed or 2 * (max(1, questions // 10),)
        guess = power.Guess(questions, gained, lost, accuracy, agreement, auc, estimators)
        lines = _plan_from_guess(guess, difference)
    text = "\n".join(lines)
    typer.echo(f"Found in 80 % of studies of {questions:,} questions:\n{text}")


@app.command(
    epilog="For example:\n\n"
    "`persistcal threshold v1.csv v2.csv --precision 0.9`\n\n"
    "`persistcal threshold v1.csv v2.csv --precision 0.9 --fail-if broken`\n\n"
    "`persistcal threshold v1.jsonl v2.jsonl --estimator self_consistency --sheet 100`\n\n"
    "`persistcal threshold v1.jsonl v2.jsonl --labels thresholds/sheet.csv`\n\n"
)
@reads_files
def threshold(
    files: Files,
    reading: "Reading",
    precision: Precision = 0.9,
    delta: Delta = 0.1,
    out: Annotated[str, typer.Option(help="Folder of the results.")] = "thresholds",
    fail_if: FailIf = None,
    sheet: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            metavar="N…",
            help="Write sheet.csv: so many later answers to label next. Several numbers are "
            "planned looks, which share --delta.",
        ),
    ] = None,
    replicates: Replicates = 10_000,
) -> None:
    """Select a threshold on each earlier checkpoint, and check it on the later ones.

    Into the folder `--out` go thresholds.csv, threshold_cells.csv, confident_regressions.csv
    and selective.csv. With `--labels sheet.csv`, a filled sheet, a threshold is certified on
    the later checkpoint, and looks.csv has a row for each look at the labels.
    """
    from persistcal.api.display import ESTIMATORS
    from persistcal.api.inputs import make_settings
    from persistcal.api.thresholds import Relabelling, check_inputs, read_texts
    from persistcal.report.threshold_views import exit_code, missing_verdicts

    _check_gate(fail_if)
    filled = None if reading.labels in (None, "log") else reading.labels
    texts, reading = reading.texts, replace(reading, texts=None)
    if texts and not sheet:
        raise typer.BadParameter("--texts is for --sheet; leave it out.")
    if sheet and (fail_if or filled):
        raise typer.BadParameter(
            f"--sheet checks no threshold, so {'--fail-if' if fail_if else '--labels'} has no "
            "meaning; leave one out."
        )
    _check_out(out, out)
    if filled:
        reading = replace(reading, labels=None, unlabelled=files[-1])
        later = Relabelling(_read(files, reading), reading.estimators)
        import pandas as pd

        from persistcal.store import artifacts

        path = Path(out, "looks.csv")
        looks = pd.DataFrame(columns=artifacts.LOOKS.schema.names)
        if path.exists():
            looks = artifacts.read_csv(path, artifacts.LOOKS)
        made = later.certify(filled, looks, precision=precision, delta=delta)
        rows = [*looks.to_dict("records"), made.row]
        looks = pd.DataFrame(rows, columns=looks.columns)
        looks = looks.drop_duplicates(list(artifacts.LOOKS.key), keep="last")
        [written] = _write_tables({"looks": looks}, out)
        typer.echo(f"{made.text}\nTable: {written}")
        if fail_if == "undecided" and not made.is_certified:
            raise typer.Exit(4)
        return
    if sheet:
        reading = replace(reading, unlabelled=files[-1])
        shown = read_texts(texts) if texts else None
        later = Relabelling(_read(files, reading), reading.estimators, shown)
        typer.echo(later.write_sheet(str(Path(out, "sheet.csv")), sheet))
        return
    inputs = _read(files, reading)
    settings = make_settings(n_replicates=replicates, precision=precision, delta=delta)
    checked = check_inputs(inputs, settings)
    paths = _write_tables(checked.tables, out)
    typer.echo("\n".join([checked.summary(ESTIMATORS), *inputs.notes]))
    typer.echo(f"Tables: {', '.join(paths)}")
    if code := exit_code(checked.tables["thresholds"], fail_if):
        if fail_if == "undecided":
            for line in missing_verdicts(checked.tables["thresholds"]):
                typer.echo(f"No verdict: {line}.", err=True)
        raise typer.Exit(code)


@app.command(
    epilog="For example:\n\n"
    "`persistcal label-curve v1.jsonl v2.jsonl --estimator self_consistency`\n\n"
)
@reads_files
def label_curve(
    files: Files,
    reading: "Reading",
    precision: Precision = 0.9,
    delta: Delta = 0.1,
    out: Annotated[str, typer.Option(help="Folder of the results.")] = "thresholds",
) -> None:
    """Show which thresholds 30 to 2,000 labels of the later checkpoint certify.

    Both checkpoints need labels. Sheets of each size are drawn as by `threshold --sheet`, and
    label_curve.csv goes into the folder `--out`.
    """
    from persistcal.api.thresholds import Relabelling, describe_curve
    from persistcal.evaluation.relabelling import curve_sizes

    _check_out(out, out)
    later = Relabelling(_read(files, reading), reading.estimators)
    with _bar(len(curve_sizes(len(later.ids)))) as step:
        curve = later.label_curve(precision=precision, delta=delta, step=step)
    [path] = _write_tables({"label_curve": curve}, out)
    typer.echo(f"{describe_curve(curve)}\nTable: {path}")


def _plan_from_guess(guess: "power.Guess", difference: float | None) -> Iterator[str]:
    """Yield a line per smallest difference, and one per number of questions for another."""
    from persistcal.evaluation import power

    result = power.findable(guess, difference)
    for measure, smallest, _ in result:
        yield f"{measure}: {'none' if isnan(smallest) else f'{smallest:.3f}'}"
    if difference is None:
        return
    for measure, _, questions in result[1:]:
        name = measure.removesuffix(" of two estimators")
        needed = f"{questions:,}" if questions else "impossible by this guess"
        yield f"questions for a {name} of {difference:g}: {needed}"


def _plan_from_results(
    folder: str, asked: int, questions: int, difference: float | None
) -> Iterator[str]:
    """Yield a line per test of the study in `folder`, as if it had asked `questions`."""
    from scipy.stats import norm

    from persistcal.evaluation import power
    from persistcal.evaluation.metrics.registry import METRICS
    from persistcal.store import artifacts

    power.check_count("the number of questions that the study asked", asked)
    if difference is not None:
        power.check_share("difference", difference)
    tests = artifacts.read_csv(Path(folder, "significance.csv"), artifacts.SIGNIFICANCE)
    shown = tests[(tests["conditioning"] == "odds") & tests["lower_2_5pct"].notna()]
    width = shown["upper_97_5pct"] - shown["lower_2_5pct"]
    errors = width / (2 * norm.ppf(0.975))  # from 95 % intervals
    for row, error in zip(shown.to_dict("records"), errors, strict=True):
        # Errors of a claim: of the simultaneous interval, and of a power of 80 %
        reach = (row["simultaneous_upper"] - row["simultaneous_lower"]) / 2
        multiple = (reach / error if reach > 0 else norm.ppf(0.975)) + norm.ppf(power.POWER)
        scaled = error * (asked / questions) ** 0.5
        name = f"{row['scope']} {METRICS[str(row['metric'])].heading}"
        line = f"{row['model']} {row['dataset']} {name}, {row['best']} − {row['other']}: "
        line += f"{multiple * scaled:.3f}"
        if difference and error > 0:
            needed = power.questions_needed(difference, error, asked, multiple)
            line += f"; questions for {difference:g}: {needed:,}"
        yield line


def _write_tables(tables: "Mapping[str, pd.DataFrame]", folder: str) -> list[str]:
    """Write tables of `artifacts` as CSV into a folder, and return the paths."""
    from persistcal.store import artifacts

    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = {name: str(Path(folder, f"{name}.csv")) for name in tables}
    for name, path in paths.items():
        artifacts.write_csv(tables[name], path, getattr(artifacts, name.upper()))
    return list(paths.values())


def _check_out(out: str, folder: str) -> None:
    """Refuse an empty `--out`, and a folder that cannot be written, before files are read."""
    from persistcal.store.files import check_writable

    if not out.strip():
        raise typer.BadParameter("--out is empty; give a name.")
    check_writable(folder)


def _check_gate(fail_if: str | None) -> None:
    if fail_if not in (None, "broken", "undecided"):
        raise typer.BadParameter(f"--fail-if is {fail_if!r}; give 'broken' or 'undecided'.")


def _read(files: list[str], reading: "Reading") -> "PredictionTables":
    from persistcal.api.files import read_study

    if reading.labels not in (None, "log"):
        raise typer.BadParameter(f"--labels is {reading.labels!r}, and can be 'log'.")
    with _standard_input(files) as names:
        return read_study(names, reading)


def _compare(
    files: list[str], reading: "Reading", settings: EvaluationSettings
) -> "tuple[Comparison, str]":
    """Return a comparison and its page."""
    from persistcal.api.evaluate import compare_inputs

    inputs = _read(files, reading)
    # Metrics and bootstrap of each; states, pairs, thresholds; page
    n_steps = 2 * len(inputs.predictions) + 4
    with _bar(n_steps) as step:
        comparison = compare_inputs(inputs, settings, step)
        text = comparison.to_html()
        step("page")
    return comparison, text


@contextmanager
def _standard_input(files: list[str]) -> Iterator[list[str]]:
    """Yield the files, with a temporary file in the place of standard input."""
    from persistcal.store.files import write_whole

    if "-" not in files:
        yield files
        return
    content = sys.stdin.buffer.read()
    start = content.lstrip()[:4]
    ending = "parquet" if start == b"PAR1" else "jsonl" if start[:1] in (b"{", b"[") else "csv"
    if content.startswith(b"\x1f\x8b"):
        raise ValueError("standard input is compressed; unpack it first, as zcat does.")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, f"stdin.{ending}"))
        write_whole(path, content)
        try:
            yield [path if file == "-" else file for file in files]
        except ValueError as error:
            raise ValueError(str(error).replace(f"{folder}/", "")) from error


@contextmanager
def _bar(length: int) -> "Iterator[Step]":
    """Yield a function that shows what is finished and how long it took, on one line."""
    start, is_terminal = time.monotonic(), sys.stderr.isatty()
    finished: list[str] = []

    def step(name: str) -> None:
        finished.append(name)
        seconds = time.monotonic() - start
        line = f"{len(finished)} of {length} steps after {seconds:.0f} s: {name}"
        typer.echo(f"\r{line:<79}" if is_terminal else line, err=True, nl=not is_terminal)

    yield step
    if is_terminal:
        typer.echo(err=True)


def _repeat_options(words: Sequence[str]) -> list[str]:
    """Return the words of a command with options of `SEVERAL` repeated before each value.

    >>> _repeat_options(["compare", "a", "b", "--names", "v1", "v2", "--seed", "1"])
    ['compare', 'a', 'b', '--names', 'v1', '--names', 'v2', '--seed', '1']
    """
    repeated: list[str] = []
    option = ""
    for word in words:
        if word.startswith("-"):
            option = word if word in SEVERAL else ""
        elif option and repeated[-1] != option:
            repeated.append(option)
        repeated.append(word)
    return repeated


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line, or `words`; invalid input ends it with one sentence."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    try:
        app(_repeat_options(sys.argv[1:] if words is None else words))
    except Exception as error:
        arrow = sys.modules.get("pyarrow")  # which is imported only to read files
        expected = (ValueError, OSError, *([arrow.ArrowException] if arrow else []))
        if not isinstance(error, expected):
            raise
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        file = getattr(error, "filename", None)
        typer.echo(f"persistcal: {f'{file}: ' if file else ''}{text}", err=True)
        sys.exit(1)
