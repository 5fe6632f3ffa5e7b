"""The commands, their options and help, and how they end.

Exit codes: 0 for a result, 1 for files or numbers that cannot be right, with one sentence,
and 2 for a command that is not understood.
"""

import inspect
import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import pandas as pd
import pyarrow as pa
import typer

from persistcal.command import plan as planning
from persistcal.command.files import ESTIMATORS, StudyOfFiles, read_study
from persistcal.command.results import (
    Settings,
    check_compared,
    metrics_of,
    page_of,
    sentences_of,
    tests_of,
)
from persistcal.command.thresholds import (
    TABLES,
    Later,
    read_sheet,
    threshold_lines,
    threshold_tables,
)
from persistcal.evaluation.directions import MIN_DIRECTION
from persistcal.evaluation.power import MOST_QUESTIONS, Guess
from persistcal.evaluation.replicates import MIN_REPLICATES
from persistcal.evaluation.thresholds import BROKEN, UNDECIDED
from persistcal.report.threshold_views import exit_code
from persistcal.store import artifacts
from persistcal.store.files import check_writable, folder_of, inside, make_folder, write_whole

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
        help="Answers or predictions (CSV, JSONL, parquet, also with .gz), logs of "
        "lm-evaluation-harness (samples_*.jsonl) or Inspect (.eval), in the order of the "
        "checkpoints; - is standard input. A checkpoint is called as a column says, else as "
        "its file, or the folder where files are called alike.",
    ),
]
MinContrast = Annotated[
    int, typer.Option(min=1, help="Smaller contrast sets are left out of the means.")
]
Labels = Annotated[
    str | None,
    typer.Option(help="'log' takes the score of a log for the label; else lexical match."),
]
Filter = Annotated[
    str | None, typer.Option(help="Filter of lm-evaluation-harness whose output is the answer.")
]
Estimators = Annotated[
    list[str] | None,
    typer.Option("--estimator", help="Who rates answers; may be given several times."),
]
Beams = Annotated[
    bool | None,
    typer.Option(
        "--beams/--samples",
        help="Whether several answers to a question are beams, which weigh by their "
        "log-probability, or samples, which weigh equally.",
    ),
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
Seed = Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")]
Step = Callable[[str], None]


@dataclass(frozen=True)
class Reading:
    """Options about the content of files, which all commands that read files share."""

    filter: Filter = None
    estimator: Estimators = None
    beams: Beams = None


def reads_files(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Reading`, which it gets as its parameter `reading`."""
    own = inspect.signature(command).parameters.values()
    shared = inspect.signature(Reading).parameters.values()
    asked = [one.replace(kind=one.KEYWORD_ONLY) for one in (*own, *shared)]

    def call(**given: Any) -> None:  # noqa: ANN401
        reading = Reading(**{one.name: given.pop(one.name) for one in shared})
        command(reading=reading, **given)

    call.__name__, call.__doc__ = command.__name__, command.__doc__
    kept = [one for one in asked if one.name != "reading"]
    call.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in kept}
    return call


@app.command(
    epilog="For example:\n\n"
    "`persistcal compare early.jsonl late.jsonl`\n\n"
    "`persistcal compare step1/samples_quiz.jsonl step2/samples_quiz.jsonl --labels log`\n\n"
    "`zcat predictions.csv.gz | persistcal compare - --out out --min-contrast 50`\n\n",
)
@reads_files
def compare(
    files: Files,
    reading: Reading,
    out: Annotated[str, typer.Option(help="Folder of the results.")] = "comparison",
    min_contrast: MinContrast = 20,
    min_direction: MinDirection = MIN_DIRECTION,
    replicates: Replicates = 10_000,
    seed: Seed = 17,
    labels: Labels = None,
) -> None:
    """Compare checkpoints and estimators: metrics, tests and the page.

    Into the folder `--out` go metrics.csv, significance.csv, intervals.csv, contrast_sets.csv,
    states.csv, trends.csv and report/index.html.
    """
    settings = Settings(min_contrast, min_direction, replicates, seed)
    _check_out(out, out)
    study = _read(files, labels, reading)
    named, page, said = _page_and_tables(study, settings)
    make_folder(out)
    for name, frame in named.items():
        table = getattr(artifacts, name.upper())
        artifacts.write_csv(frame, inside(out, f"{name}.csv"), table)
    report = inside(make_folder(inside(out, "report")), "index.html")
    write_whole(report, page)
    typer.echo("\n".join([said, *sentences_of(study, settings), f"Page: {report}"]))
    typer.echo(f"Tables: {', '.join(inside(out, f'{n}.csv') for n in named)}")


@app.command(
    epilog="For example:\n\n`persistcal metrics early.csv late.csv > metrics.csv`\n\n",
)
@reads_files
def metrics(
    files: Files,
    reading: Reading,
    min_contrast: MinContrast = 20,
    labels: Labels = None,
) -> None:
    """Print every metric as CSV: what `compare` writes to metrics.csv, without its tests."""
    settings = Settings(min_contrast, MIN_DIRECTION, 0, 0)
    study = _read(files, labels, reading)
    with _bar(len(study.predictions)) as step:
        found = metrics_of(study, settings, step)
    for line in sentences_of(study, settings):
        typer.echo(line, err=True)
    typer.echo(found.to_csv(index=False), nl=False)


@app.command(
    epilog="For example:\n\n`persistcal page early.jsonl late.jsonl --out page.html`\n\n",
)
@reads_files
def page(
    files: Files,
    reading: Reading,
    out: Annotated[str, typer.Option(help="The page, one HTML file.")] = "page.html",
    min_contrast: MinContrast = 20,
    min_direction: MinDirection = MIN_DIRECTION,
    replicates: Replicates = 10_000,
    seed: Seed = 17,
    labels: Labels = None,
) -> None:
    """Write the page alone: findings, charts, and every answer behind them."""
    settings = Settings(min_contrast, min_direction, replicates, seed)
    _check_out(out, folder_of(out))
    study = _read(files, labels, reading)
    _, made, _ = _page_and_tables(study, settings)
    write_whole(out, made)
    typer.echo("\n".join([*sentences_of(study, settings), f"Page: {out}"]))


@app.command(
    epilog="For example:\n\n"
    "`persistcal plan --questions 5000 --changed 700 300 --difference 0.05`\n\n"
    "`persistcal plan --questions 5000 --results comparison 800`\n\n"
)
def plan(
    questions: Annotated[
        int, typer.Option(min=2, max=MOST_QUESTIONS, help="Questions that are to be asked.")
    ],
    changed: Annotated[
        tuple[int, int] | None,
        typer.Option(
            metavar="GAINED LOST",
            help="Questions that the later checkpoint gains and loses (default: a tenth each).",
        ),
    ] = None,
    accuracy: Annotated[float, typer.Option(help="Of the earlier checkpoint.")] = 0.5,
    agreement: Annotated[float, typer.Option(help="Share of equal signs on those.")] = 0.7,
    auc: Annotated[float, typer.Option(help="Contrast AUC, about.")] = 0.65,
    correlation: Annotated[float, typer.Option(help="Of two estimators' AUCs.")] = 0.5,
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
    """Print the differences that a study could find, before there is one."""
    if results:
        lines = planning.measured(*results, questions, difference)
    else:
        gained, lost = changed or 2 * (max(1, questions // 10),)
        guess = Guess(questions, gained, lost, accuracy, agreement, auc, correlation)
        lines = planning.guessed(guess, difference)
    found = "\n".join(lines)
    typer.echo(f"Found with 80 % power at 5 %, two-sided, by {questions:,} questions:\n{found}")


@app.command(
    epilog="For example:\n\n"
    "`persistcal threshold v1.csv v2.csv --precision 0.9`\n\n"
    "`persistcal threshold v1.csv v2.csv --precision 0.9 --fail-if broken`\n\n"
    "`persistcal threshold v1.jsonl v2.jsonl --estimator self_consistency --sheet 100`\n\n",
)
@reads_files
def threshold(
    files: Files,
    reading: Reading,
    precision: Annotated[
        float, typer.Option(help="Share of correct answers above the threshold, such as 0.9.")
    ] = 0.9,
    delta: Annotated[
        float, typer.Option(help="Probability that a selected threshold misses the precision.")
    ] = 0.1,
    out: Annotated[str, typer.Option(help="Folder of the results.")] = "thresholds",
    fail_if: Annotated[
        str | None,
        typer.Option(
            help="Release gate: 'broken' exits with 3 if a threshold is broken; 'undecided' "
            "exits with 4, too, if a verdict is undecided or no threshold was found."
        ),
    ] = None,
    sheet: Annotated[
        int | None,
        typer.Option(min=1, help="Write sheet.csv: so many later answers to label next."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="A filled sheet.csv: certify a threshold on the later checkpoint. 'log': as "
            "for compare."
        ),
    ] = None,
) -> None:
    """Select a threshold on each earlier checkpoint, and check it on the later ones.

    Into the folder `--out` go thresholds.csv, threshold_cells.csv, confident_regressions.csv
    and selective.csv.
    """
    if fail_if not in (None, BROKEN, UNDECIDED):
        raise typer.BadParameter(f"--fail-if is {fail_if!r}; give 'broken' or 'undecided'.")
    filled = None if labels in (None, "log") else labels
    if not filled:
        _check_out(out, out)
    rows = read_sheet(filled) if filled else None
    later_only = files[-1] if sheet or filled else None
    study = _read(files, None if filled else labels, reading, unlabelled=later_only)
    if filled and rows is not None:
        later = Later(study, reading.estimator or [])
        typer.echo(later.certify(rows, filled, precision=precision, delta=delta))
        return
    if sheet:
        drawn = Later(study, reading.estimator or []).sheet(sheet).to_csv(index=False)
        path = inside(make_folder(out), "sheet.csv")
        write_whole(path, drawn)
        typer.echo(f"Sheet: {path}. Fill in its column correct with 1 or 0.")
        return
    tables = threshold_tables(study, precision=precision, delta=delta)
    make_folder(out)
    for name, table in TABLES.items():
        artifacts.write_csv(tables[name], inside(out, f"{name}.csv"), table)
    lines = threshold_lines(tables, ESTIMATORS)
    typer.echo("\n".join([*lines, *study.notes]))
    typer.echo(f"Tables: {', '.join(inside(out, f'{name}.csv') for name in TABLES)}")
    if code := exit_code(tables["thresholds"], fail_if):
        raise typer.Exit(code)


def _check_out(out: str, folder: str) -> None:
    """Refuse an empty `--out`, and a folder that cannot be written, before anything is read."""
    if not out.strip():
        raise typer.BadParameter("--out is empty; give a name.")
    check_writable(folder)


def _read(
    files: list[str], labels: str | None, reading: Reading, *, unlabelled: str | None = None
) -> StudyOfFiles:
    if labels not in (None, "log"):
        raise typer.BadParameter(f"--labels is {labels!r}, and may be 'log'.")
    given = {"labels": labels, "filter": reading.filter}
    from_logs = {key: value for key, value in given.items() if value}
    strategy = {None: "", True: "beams", False: "sample"}[reading.beams]
    with _with_input(files) as names:
        return read_study(
            names,
            from_logs=from_logs,
            estimators=reading.estimator or [],
            unlabelled=unlabelled,
            strategy=strategy,
        )


def _page_and_tables(
    study: StudyOfFiles, settings: Settings
) -> tuple[dict[str, pd.DataFrame], str, str]:
    """Return the tables by name, the page, and its summary."""
    check_compared(study)
    n_steps = 2 * len(study.predictions) + 2  # metrics and bootstrap of each; states, page
    with _bar(n_steps) as step:
        metrics = metrics_of(study, settings, step)
        tests = tests_of(study, settings, step)
        page, said = page_of(study, settings, metrics, tests)
        step("page")
    named = {name: table for name, table in tests.items() if name != "replicates"}
    return {"metrics": metrics, **named}, page, said


@contextmanager
def _with_input(files: list[str]) -> Iterator[list[str]]:
    """Give the files, with a file in the place of standard input."""
    if "-" not in files:
        yield files
        return
    content = sys.stdin.buffer.read()
    start = content.lstrip()[:4]
    ending = "parquet" if start == b"PAR1" else "jsonl" if start[:1] == b"{" else "csv"
    if content.startswith(b"\x1f\x8b"):
        raise ValueError("standard input is compressed; unpack it first, as zcat does.")
    with tempfile.TemporaryDirectory() as folder:
        path = inside(folder, f"stdin.{ending}")
        write_whole(path, content)
        try:
            yield [path if file == "-" else file for file in files]
        except ValueError as error:
            raise ValueError(str(error).replace(f"{folder}/", "")) from error


@contextmanager
def _bar(length: int) -> Iterator[Step]:
    """Give a function that moves a bar on the terminal, and says what is done."""
    with typer.progressbar(length=length, file=sys.stderr) as bar:

        def step(what: str) -> None:
            bar.label = what
            bar.update(1)

        yield step


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line, or `words`; bad input ends it with one sentence."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    try:
        app(words)
    except (ValueError, OSError, pa.ArrowException) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        where = getattr(error, "filename", None)
        typer.echo(f"persistcal: {f'{where}: ' if where else ''}{said}", err=True)
        sys.exit(1)
