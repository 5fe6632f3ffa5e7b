"""The command `persistcal`: options, help and exit codes.

Exit codes: 0 for a result, 1 for invalid files or numbers, with one sentence, and 2 for an
invalid command.
"""

import json
import logging
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from itertools import chain
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from persistcal import __version__
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.readers.reading import Reading

# Each command imports modules itself, so that help and errors are immediate.
if TYPE_CHECKING:
    import pandas as pd

    from persistcal.api.display import Comparison
    from persistcal.api.evaluate import Step
    from persistcal.api.gate import Rules
    from persistcal.evaluation import power
    from persistcal.evaluation.gate import Gate
    from persistcal.readers.inputs import PredictionTables

NOT_FURTHER = {"files", "names", "again", "by", "greedy", "delta", "n_replicates"}
Option = Callable[[Any], Any]  # click's decorator
PATIENCE = 5  # seconds without a word about a long step


class Words(click.Option):
    """An option that takes all words up to the next option."""

    def __init__(self, names: Sequence[str], **settings: Any) -> None:  # noqa: ANN401
        super().__init__(names, **settings, multiple=True)


class Command(click.Command):
    """A command that can have options of the class `Words`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words after the command's name."""
        options = {name for p in self.params if isinstance(p, Words) for name in p.opts}
        return super().parse_args(ctx, _repeat_options(args, options))


class Commands(click.Group):
    """The commands, in the order of this file."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)


def _repeat_options(words: Sequence[str], options: Collection[str]) -> list[str]:
    """Return words with each of `options` repeated before each value.

    >>> _repeat_options(["a", "b", "--names", "v1", "v2", "--seed", "1"], {"--names"})
    ['a', 'b', '--names', 'v1', '--names', 'v2', '--seed', '1']
    """
    repeated: list[str] = []
    option = ""
    for word in words:
        if word.startswith("-") and word != "-":  # which is standard input
            option = word if word in options else ""
        elif option and repeated[-1] != option:
            repeated.append(option)
        repeated.append(word)
    return repeated


def _options_of(record: type, *names: str, without: Sequence[str] = ()) -> Iterator[Option]:
    """Yield the options of the fields of a record, in their order, or only those of `names`."""
    for option in (field for field in fields(record) if field.metadata):
        if option.name in without or option.name not in (names or [option.name]):
            continue
        use = option.metadata
        is_number = isinstance(option.default, int | float)
        settings = {"default": option.default if is_number else None, **use["settings"]}
        if settings.get("metavar", "").endswith("…"):
            settings["cls"] = Words
        if isinstance(settings.get("type"), list):
            settings["type"] = click.Choice(settings["type"])
        if "least" in settings:
            settings["type"] = click.IntRange(min=settings.pop("least"))
        usual = {f"--{option.name.replace('_', '-')}": use["text"]}
        for flag, text in (use["flags"] or usual).items():
            flags = [flag] if option.name == "scale" else [flag, option.name]
            yield click.option(*flags, help=text, **settings)


def _command(*options: Option, examples: Sequence[str]) -> Callable[[Any], click.Command]:
    """Return a decorator: a function becomes a command, and receives its options by name."""

    def decorate(function: Any) -> click.Command:  # noqa: ANN401
        for option in reversed(options):
            function = option(function)
        return app.command(epilog="\n".join(["\b", "For example:", *examples]))(function)

    return decorate


FAIL_IF = click.option(
    "--fail-if",
    type=click.Choice(["broken", "undecided"]),
    help="Release gate: 'broken' exits with 3 if a threshold is broken; 'undecided' exits with "
    "4, too, if a verdict is undecided or missing.",
)

GATE = (
    click.option(
        "--gate",
        cls=Words,
        metavar="RULE…",
        help="Release gate, any of accuracy=-0.02 calibration=0.05 threshold=0.9 "
        "confidence=followed: exits with 3 if an interval is surely outside, and with 4 if one "
        "is not surely inside or missing.",
    ),
    click.option(
        "--markdown", help="File of the verdict as Markdown; a job's summary has it, too."
    ),
    click.option("--junit", help="File of the gate's rules as JUnit test cases."),
    click.option("--policy", help="A YAML file with these rules, and others by dataset."),
    click.option(
        "--gate-estimator",
        cls=Words,
        metavar="NAME…",
        help="Gate these estimators only (default: all but baselines).",
    ),
)

FILES = click.argument(
    "files",
    nargs=-1,
    required=True,
    help="Answers or predictions (CSV, TSV, JSON, parquet, also with .gz), logs of "
    "lm-evaluation-harness (samples_*.jsonl) or Inspect (.eval, .json), in the order of "
    "the checkpoints; a folder, or a pattern in quotes, is a version with a log per task; "
    "- is standard input. A checkpoint's name is the column `checkpoint`, "
    "--names, or the part in which the names of the files differ.",
)
# The files and how they are read; thresholds are about one ask, so samples are not halved
READS = (FILES, *_options_of(Reading))
READS_ONE_ASK = (FILES, *_options_of(Reading, without=["halvings"]))


def _reading(columns: Sequence[str], uncertainty: str | None, **options: Any) -> Reading:  # noqa: ANN401
    """Return the options of `READS` as `Reading`."""
    from persistcal.readers.scales import PROBABILITIES, parse_scale

    names = _named_values("--columns", columns, "confidence=conf")
    if uncertainty and names.setdefault("confidence", uncertainty) != uncertainty:
        raise click.BadParameter("--uncertainty and --columns name two columns; keep one.")
    try:
        scale = parse_scale(
            options.pop("scale"), options.pop("words"), is_uncertainty=bool(uncertainty)
        )
    except OSError as error:
        raise ValueError(
            f"--words {error.filename}: {error.strerror}; give a CSV file with the columns "
            "word and confidence, and a row for each word."
        ) from None
    if (missing := options["missing"]) not in (None, "drop"):
        share = PROBABILITIES.number(missing)
        if not 0 <= share <= 1:
            raise click.BadParameter(
                f"--missing is {missing!r}; give 'drop', or a number to 1."
            )
        options["missing"] = f"{share:.15g}"
    return Reading(columns=names, scale=None if scale == PROBABILITIES else scale, **options)


def _settings(options: dict[str, Any]) -> EvaluationSettings:
    """Take the settings of an evaluation out of `options`, and return them."""
    from persistcal.readers.inputs import make_settings

    names = [option.name for option in fields(EvaluationSettings) if option.name in options]
    given = {name: options.pop(name) for name in names}
    if "pairs" in given:
        given["pairs"] = _pairs(given["pairs"])
        margin = _named_values("--margin", given["margin"], "accuracy=0.01")
        try:
            given["margin"] = {name: float(share) for name, share in margin.items()}
        except ValueError:
            raise click.BadParameter("--margin takes shares, such as accuracy=0.01.") from None
    return make_settings(**given)


def _named_values(option: str, words: Sequence[str], example: str) -> dict[str, str]:
    """Return the values that the words of an option have for names.

    >>> _named_values("--margin", ["accuracy=.01", "calibration=0.02"], "accuracy=.01")
    {'accuracy': '.01', 'calibration': '0.02'}
    """
    values: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not (name and value):
            raise click.BadParameter(f"{option} is {word!r}; write it as {example}.")
        if values.setdefault(name, value) != value:
            raise click.BadParameter(f"{option} gives {name} twice; keep one.")
    return values


def _pairs(words: Sequence[str]) -> Any:  # noqa: ANN401
    """Return the pairs of checkpoints that the option `--pairs` names.

    >>> _pairs([]), _pairs(["adjacent"]), _pairs(["v1:v3", "v2:v3"])
    ('all', 'adjacent', [('v1', 'v3'), ('v2', 'v3')])
    """
    if not words or (len(words) == 1 and words[0] in ("all", "adjacent", "first")):
        return words[0] if words else "all"
    pairs = [tuple(word.split(":")) for word in words]
    for word, pair in zip(words, pairs, strict=True):
        if len(pair) != 2 or not all(pair):
            raise click.BadParameter(
                f"--pairs is {word!r}; give all, adjacent, first, or pairs such as v1:v2."
            )
    return pairs


@click.group(
    cls=Commands,
    context_settings={"show_default": True},
    help="Does a language model's confidence follow its knowledge as the knowledge changes?",
)
@click.version_option(__version__, prog_name="persistcal")
def app() -> None:
    """Parse the words before the command's name."""


@_command(
    click.option("--out", default="comparison", help="Folder of the results."),
    FAIL_IF,
    *GATE,
    click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON."),
    click.option(
        "--verbose", is_flag=True, help="Print also all findings and a table of metrics."
    ),
    *_options_of(EvaluationSettings),
    *READS,
    examples=[
        "persistcal compare early.jsonl late.jsonl --precision 0.8",
        "persistcal compare step1/samples_quiz.jsonl step2/samples_quiz.jsonl --labels log",
        "persistcal compare a.csv b.csv --columns confidence=conf correct=right --names v1 v2",
        "persistcal compare v1a.jsonl v2a.jsonl --again v1b.jsonl v2b.jsonl",
        "zcat predictions.csv.gz | persistcal compare - --out out --min-contrast 50",
    ],
)
def compare(
    files: Sequence[str],
    out: str,
    fail_if: str | None,
    gate: Sequence[str],
    policy: str | None,
    gate_estimator: Sequence[str],
    as_json: bool,
    verbose: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Compare checkpoints: a verdict, metrics, tests and the page.

    The verdict answers whether accuracy changed, whether confidence followed, whether it is
    calibrated at the later checkpoint, and whether a threshold keeps its precision. Into the
    folder `--out` go metrics.csv, significance.csv, intervals.csv, claims.csv,
    contrast_sets.csv, states.csv, trends.csv, pairs.csv, min_contrast.csv, thresholds.csv,
    threshold_cells.csv, confident_regressions.csv, selective.csv, findings.csv and
    report/index.html.
    """
    from persistcal.report.page.verdict import fold_line
    from persistcal.report.phrases import gate_line
    from persistcal.store.files import write_whole

    _check_out(out, [*files, *options["again"]])
    rules = _rules(gate, policy, fail_if, options)
    markdown, junit = (options.pop(name) for name in ("markdown", "junit"))
    if junit and not rules:
        raise click.BadParameter("--junit is for a gate; give --gate, too.")
    settings = _settings(options)
    paths: list[str] = []
    comparison, page, closed = _compare(
        files,
        _reading(**options),
        settings,
        lambda made: paths.extend(_write_tables(made, out)),
        rules=rules,
        gated=gate_estimator,
    )
    report = str(Path(out, "report", "index.html"))
    write_whole(report, page)
    code = _exit_code(closed, fail_if)
    _write_gate(comparison, closed, markdown, junit)
    if as_json:
        record = comparison.verdict_record(*_given(), gate=closed)
        written = {"exit_code": code, "page": report, "tables": paths}
        click.echo(json.dumps(record | written, indent=2, ensure_ascii=False))
    else:
        text = comparison.verdict(*_given())
        if verbose:
            text += f"\n{comparison.summary()}"
        click.echo(f"{text}\nPage: {report}\nTables: {', '.join(paths)}")
        if closed:
            click.echo(fold_line(gate_line(closed), indent=2))
    raise click.exceptions.Exit(code)


@_command(
    *_options_of(EvaluationSettings, "min_contrast"),
    *READS,
    examples=["persistcal metrics early.csv late.csv > metrics.csv"],
)
def metrics(files: Sequence[str], **options: Any) -> None:  # noqa: ANN401
    """Print every metric as CSV, without tests.

    The columns are the same as in metrics.csv of `compare`.
    """
    from persistcal.api.evaluate import compute_metrics
    from persistcal.store import artifacts

    settings = _settings(options)
    inputs = _read(files, _reading(**options))
    with _bar(len(inputs.predictions)) as step:
        metrics = compute_metrics(inputs, settings, step)
    for line in inputs.assumptions(settings):
        click.echo(line, err=True)
    click.echo(artifacts.csv_text(metrics, artifacts.METRICS), nl=False)


@_command(
    click.option("--out", default="page.html", help="The page, one HTML file."),
    *_options_of(EvaluationSettings),
    *READS,
    examples=["persistcal page early.jsonl late.jsonl --out page.html"],
)
def page(files: Sequence[str], out: str, **options: Any) -> None:  # noqa: ANN401
    """Write only the page: findings, charts, and all answers."""
    from persistcal.store.files import write_whole

    if out.strip() and Path(out).is_dir():
        raise ValueError(f"{out}: is a folder; give --out the name of a file.")
    if Path(out).is_file() or not Path(out).exists() or not out.strip():
        _check_out(out, folder=str(Path(out).resolve().parent))  # a pipe needs no folder
    if Path(out).is_file() and not Path(out).read_bytes().startswith(b"<"):
        raise ValueError(f"{out}: exists and is no page; give another --out.")
    settings = _settings(options)
    comparison, text, _ = _compare(files, _reading(**options), settings)
    write_whole(out, text)
    click.echo("\n".join([*comparison.inputs.assumptions(settings), f"Page: {out}"]))


@_command(
    click.option(
        "--questions",
        type=click.IntRange(min=2),
        required=True,
        help="Questions that the study asks; of those about one fact count one.",
    ),
    click.option(
        "--changed",
        type=(int, int),
        metavar="GAINED LOST",
        help="Questions that the later checkpoint is expected to gain and lose (default: a "
        "tenth each).",
    ),
    click.option("--accuracy", default=0.5, help="Of the earlier checkpoint."),
    click.option("--agreement", default=0.7, help="Share of equal signs on those."),
    click.option("--auc", default=0.65, help="Approximate contrast AUC."),
    click.option(
        "--ties", default=0.0, help="Share on which a confidence stays equal, its sign 0."
    ),
    click.option(
        "--estimators",
        type=click.IntRange(min=2),
        default=2,
        help="Estimators that are compared with each other.",
    ),
    click.option("--difference", type=float, help="Print also how many questions find this."),
    click.option(
        "--results",
        type=(str, int),
        metavar="FOLDER ASKED",
        help="Take the errors of a finished study, and how many questions it asked.",
    ),
    examples=[
        "persistcal plan --questions 5000 --changed 700 300 --difference 0.05",
        "persistcal plan --questions 5000 --results comparison 800",
    ],
)
def plan(
    questions: int,
    changed: tuple[int, int] | None,
    difference: float | None,
    results: tuple[str, int] | None,
    **guesses: Any,  # noqa: ANN401
) -> None:
    """Print which differences a study could find, before it is run."""
    from persistcal.evaluation import power

    if questions > power.MOST_QUESTIONS:
        raise click.BadParameter(
            f"--questions is {questions:,}; give at most {power.MOST_QUESTIONS:,}."
        )
    if results:
        lines = _plan_from_results(*results, questions, difference)
    else:
        gained, lost = changed or 2 * (max(1, questions // 10),)
        guess = power.Guess(questions, gained, lost, **guesses)
        lines = _plan_from_guess(guess, difference)
    text = "\n".join(lines)
    click.echo(f"Found in 80 % of studies of {questions:,} questions:\n{text}")


@_command(
    *_options_of(EvaluationSettings, "precision", "delta"),
    click.option("--out", default="thresholds", help="Folder of the results."),
    FAIL_IF,
    click.option(
        "--sheet",
        cls=Words,
        type=click.IntRange(min=1),
        metavar="N…",
        help="Write sheet.csv: so many later answers to label next. Several numbers are "
        "planned looks, which share --delta.",
    ),
    click.option(
        "--lock", metavar="FILE", help="Write the thresholds to use with the last version."
    ),
    click.option(
        "--check",
        metavar="FILE",
        help="Check the thresholds of a file from --lock, and end with 3 if one is broken, "
        "with 4 if one is undecided.",
    ),
    click.option(
        "--texts",
        help="For --sheet: a file with the texts of predictions, with question_id and any of "
        "question, references and answer.",
    ),
    *_options_of(EvaluationSettings, "n_replicates"),
    *READS_ONE_ASK,
    examples=[
        "persistcal threshold v1.csv v2.csv --precision 0.9",
        "persistcal threshold v1.csv v2.csv --precision 0.9 --fail-if broken",
        "persistcal threshold v1.jsonl v2.jsonl --estimator self_consistency --sheet 100",
        "persistcal threshold v1.jsonl v2.jsonl --labels thresholds/sheet.csv",
        "persistcal threshold v1.csv v2.csv --lock thresholds.json",
        "persistcal threshold --check thresholds.json v3.csv",
    ],
)
def threshold(
    files: Sequence[str],
    out: str,
    fail_if: str | None,
    sheet: Sequence[int],
    lock: str | None,
    check: str | None,
    texts: str | None,
    **options: Any,  # noqa: ANN401
) -> None:
    """Select a threshold, and check it on the later checkpoints.

    Each earlier checkpoint selects one. Into the folder `--out` go thresholds.csv,
    threshold_cells.csv, confident_regressions.csv and selective.csv. With `--labels sheet.csv`,
    a filled sheet, a threshold is certified on the later checkpoint, and looks.csv has a row
    for each look at the labels. With `--check` nothing is written.
    """
    from persistcal.api.thresholds import Relabelling, check_inputs, read_looks, read_texts
    from persistcal.confidence.estimators.catalogue import OF_ANSWERS
    from persistcal.report.page.verdict import fold_line
    from persistcal.report.phrases import gate_line

    settings = _settings(options)
    reading = replace(_reading(**options), is_crossed=False)
    filled = None if reading.labels in (None, "log") else reading.labels
    if texts and not sheet:
        raise click.BadParameter("--texts is for --sheet; leave it out.")
    if sheet and (fail_if or filled):
        raise click.BadParameter(
            f"--sheet checks no threshold, so {'--fail-if' if fail_if else '--labels'} has no "
            "meaning; leave one out."
        )
    if sum(map(bool, (sheet, filled, lock, check))) > 1:
        raise click.BadParameter("--lock, --check, --sheet and --labels exclude each other.")
    if check:
        from persistcal.api.locks import check_lock

        closed = check_lock(check, _read(files, reading), reading, settings)
        click.echo(fold_line(gate_line(closed), indent=2))
        raise click.exceptions.Exit(_exit_code(closed, fail_if))
    _check_out(out, [*files, *options["again"]])
    if filled or sheet:
        reading = replace(reading, labels=None if filled else reading.labels)
        table = read_texts(texts) if texts else None
        inputs = _read(files, replace(reading, is_unlabelled=True))
        later = Relabelling(inputs, reading.estimators, table)
    if sheet:
        click.echo(later.write_sheet(str(Path(out, "sheet.csv")), sheet))
        return
    if filled:
        earlier = read_looks(Path(out, "looks.csv"))
        looks, texts_of_looks, is_certified = later.certify(filled, earlier, settings)
        [written] = _write_tables({"looks": looks}, out)
        click.echo("\n".join([*texts_of_looks, f"Table: {written}"]))
        if fail_if == "undecided" and not is_certified:
            raise click.exceptions.Exit(4)
        return
    inputs = _read(files, reading)
    checked = check_inputs(inputs, settings)
    paths = _write_tables(checked.tables, out)
    click.echo("\n".join([checked.summary(OF_ANSWERS), *inputs.notes]))
    click.echo(f"Tables: {', '.join(paths)}")
    if lock:
        from persistcal.api.locks import write_lock

        is_locked, text = write_lock(lock, inputs, reading, settings, checked)
        click.echo(fold_line(text, indent=2))
        if not is_locked:
            raise click.exceptions.Exit(4)
    if fail_if:
        from persistcal.api.gate import versions_alone
        from persistcal.evaluation.gate import THRESHOLD, close_gate, findings_of_thresholds

        findings = findings_of_thresholds(checked.tables["thresholds"], inputs.all_predictions)
        rules = {THRESHOLD: settings.precision}
        closed = close_gate(findings, rules, unpaired=versions_alone(inputs))
        click.echo(fold_line(gate_line(closed), indent=2))
        raise click.exceptions.Exit(_exit_code(closed, fail_if))


@_command(
    *_options_of(EvaluationSettings, "precision", "delta"),
    click.option("--out", default="thresholds", help="Folder of the results."),
    *READS_ONE_ASK,
    examples=["persistcal label-curve v1.jsonl v2.jsonl --estimator self_consistency"],
)
def label_curve(files: Sequence[str], out: str, **options: Any) -> None:  # noqa: ANN401
    """Show which thresholds 30 to 2,000 later labels certify.

    Both checkpoints need labels. Sheets of each size are drawn as by `threshold --sheet`. The
    folder `--out` receives label_curve.csv.
    """
    from persistcal.api.thresholds import Relabelling
    from persistcal.evaluation.relabelling import curve_sizes

    _check_out(out, [*files, *options["again"]])
    settings = _settings(options)
    reading = replace(_reading(**options), is_crossed=False)
    later = Relabelling(_read(files, reading), reading.estimators)
    with _bar(len(curve_sizes(len(later.ids)))) as step:
        curve = later.label_curve(settings, step)
    [path] = _write_tables({"label_curve": curve}, out)
    table = curve.set_index("n_labels")[["certified", "threshold", "precision", "coverage"]]
    text = table.rename_axis("labels").to_string(float_format="{:.2f}".format, na_rep="-")
    click.echo(f"{text}\nTable: {path}")


def _rules(
    words: Sequence[str], policy: str | None, fail_if: str | None, options: dict[str, Any]
) -> "Rules | None":
    """Return the rules of a gate; its threshold replaces `--precision` in `options`."""
    from persistcal.api.gate import Rules, read_rules, rules_of_words
    from persistcal.evaluation.gate import THRESHOLD

    if sum(map(bool, (words, policy, fail_if))) > 1:
        raise click.BadParameter(
            "--gate, --policy and --fail-if are forms of one gate; keep one of them."
        )
    if fail_if:
        return Rules({THRESHOLD: options["precision"]}, is_strict=False)
    if not words and not policy:
        return None
    rules = read_rules(policy) if policy else rules_of_words(words, options["precision"])
    options["precision"] = rules.precision or options["precision"]
    return rules


def _given() -> tuple[str, str]:
    """Return words of this command for `threshold`: all, and those that read other answers."""
    context = click.get_current_context()
    names = {param.name for param in threshold.params} - {"out", "fail_if", "precision", "by"}
    words: dict[str, list[str]] = {"files": []}
    for param in context.command.params:
        value = context.params[name := str(param.name)]
        if name in names and context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            if isinstance(param, click.Argument):
                words[name] = [*value]
            elif isinstance(param, Words):
                words[name] = [param.opts[0], *map(str, value)]
            elif isinstance(value, bool):
                words[name] = [(param.opts if value else param.secondary_opts)[0]]
            else:
                values = value if isinstance(value, tuple) else [value]
                words[name] = [word for one in values for word in (param.opts[0], str(one))]
    further = [words[name] for name in words if name not in NOT_FURTHER]
    parts = words.values(), further
    files, options = (shlex.join(chain.from_iterable(part)) for part in parts)
    return files, f" {options}" if options else ""


def _exit_code(gate: "Gate | None", fail_if: str | None) -> int:
    """Return the exit code of a gate; `--fail-if broken` lets open questions pass."""
    is_lenient = fail_if == "broken" and gate is not None and gate.result == "undecided"
    return 0 if gate is None or is_lenient else gate.exit_code


def _write_gate(
    comparison: "Comparison", gate: "Gate | None", markdown: str | None, junit: str | None
) -> None:
    """Write the verdict for a pipeline: to files, and to the summary of a GitHub job."""
    from persistcal.api.gate import as_junit, as_markdown
    from persistcal.store.files import write_whole

    if markdown or gate:
        text = as_markdown(comparison.verdict(*_given()), gate)
        if markdown:
            write_whole(markdown, text)
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(text)
    if junit and gate:
        write_whole(junit, as_junit(gate))


def _plan_from_guess(guess: "power.Guess", difference: float | None) -> Iterator[str]:
    """Yield a line per smallest difference, and one per number of questions for another."""
    from persistcal.evaluation import power

    result = power.findable(guess, difference)
    for measure, smallest, _ in result:
        yield f"{measure}: {'none' if isnan(smallest) else f'{smallest:.3f}'}"
    if difference is None:
        return
    for measure, _, questions in result[1:3]:
        name = measure.removesuffix(" of two estimators")
        needed = f"{questions:,}" if questions else "impossible by this guess"
        yield f"questions for a {name} of {difference:g}: {needed}"


def _plan_from_results(
    folder: str, guess: int, questions: int, difference: float | None
) -> Iterator[str]:
    """Yield a line per test of the study in `folder`, as if it had asked `questions`."""
    from scipy.special import ndtri

    from persistcal.evaluation import power
    from persistcal.evaluation.metrics.registry import METRICS
    from persistcal.evaluation.proportions import Z
    from persistcal.store import artifacts

    power.check_count("the number of questions that the study asked", guess)
    if difference is not None:
        power.check_share("difference", difference)
    path = Path(folder, "significance.csv")
    if not path.exists():
        raise ValueError(f"{path}: there is no such file; give the folder --out of compare.")
    tests = artifacts.read_csv(path, artifacts.SIGNIFICANCE)
    rows = tests[(tests["conditioning"] == "odds") & tests["lower_2_5pct"].notna()]
    if rows.empty:
        raise ValueError(f"{path}: compares no two estimators; leave --results out.")
    width = rows["upper_97_5pct"] - rows["lower_2_5pct"]
    errors = width / (2 * Z)  # from 95 % intervals
    for row, error in zip(rows.to_dict("records"), errors, strict=True):
        # Errors of a claim: of the simultaneous interval, and of a power of 80 %
        reach = (row["simultaneous_upper"] - row["simultaneous_lower"]) / 2
        multiple = (reach / error if reach > 0 else Z) + float(ndtri(power.POWER))
        scaled = error * (guess / questions) ** 0.5
        name = f"{row['scope']} {METRICS[str(row['metric'])].heading}"
        line = f"{row['model']} {row['dataset']} {name}, {row['best']} − {row['other']}: "
        line += f"{multiple * scaled:.3f}"
        if difference and error > 0:
            needed = power.questions_needed(difference, error, guess, multiple)
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


def _check_out(out: str, files: Sequence[str] = (), folder: str = "") -> None:
    """Refuse an `--out` that is empty, that cannot be written, or whose tables are the `files`.

    A folder `out` is written by this process alone until the command ends. A page is in a
    `folder`.
    """
    from persistcal.store import artifacts
    from persistcal.store.files import check_writable, one_writer

    if not out.strip():
        raise click.BadParameter("--out is empty; give a name.")
    check_writable(folder or out)
    if not folder:
        click.get_current_context().with_resource(one_writer(out))
    for given in map(Path, files):
        for file in given.glob("*.csv") if given.is_dir() else [given]:
            table = getattr(artifacts, file.stem.upper(), None)
            result = Path(out, f"{file.stem}.csv")
            is_replaced = isinstance(table, artifacts.Table) and result.exists()
            if is_replaced and file.exists() and file.samefile(result):
                raise ValueError(f"{file}: would be replaced by a result; give another --out.")


def _read(
    files: Sequence[str], reading: Reading, *, labels_only: bool = False
) -> "PredictionTables":
    """Return the tables of files; without `labels_only` they need a confidence."""
    from persistcal.readers.study import read_study

    if reading.labels not in (None, "log"):
        raise click.BadParameter(f"--labels is {reading.labels!r}, and can be 'log'.")
    with _standard_input([*files, *reading.again]) as names:
        files_again = names[len(files) :]
        inputs = read_study(names[: len(files)], replace(reading, again=files_again))
    if not labels_only:
        inputs.check_rated()
    return inputs


def _compare(
    files: Sequence[str],
    reading: Reading,
    settings: EvaluationSettings,
    ready: "Callable[[dict[str, pd.DataFrame]], object]" = lambda _: None,
    *,
    rules: "Rules | None" = None,
    gated: Sequence[str] = (),
) -> "tuple[Comparison, str, Gate | None]":
    """Return a comparison, its page and a gate; `ready` is called with each table."""
    from persistcal.api.evaluate import compare_inputs
    from persistcal.api.gate import check_rules

    inputs = _read(files, reading, labels_only=True)
    if rules and rules.is_strict and (problem := check_rules(rules, gated, inputs)):
        click.echo(f"persistcal: {problem}", err=True)
        raise click.exceptions.Exit(4)
    # Metrics and bootstrap of each; states, pairs, thresholds; page
    n_steps = 2 * len(inputs.predictions) + 4
    with _bar(n_steps) as step:
        comparison = compare_inputs(inputs, settings, step, ready)
        closed = rules and comparison.gate(*rules[:2], estimators=gated)
        text = comparison.to_html(closed, *_given())
        step("page")
    return comparison, text, closed


@contextmanager
def _standard_input(files: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the files, with a temporary file in the place of standard input."""
    from persistcal.store.files import write_whole

    if "-" not in files:
        yield files
        return
    if files.count("-") > 1:
        raise ValueError("-: standard input is given twice; put one of the two into a file.")
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
    """Yield a function that shows the finished steps and the time on one line.

    A part of a step is shown if nothing else was for some seconds.
    """
    from persistcal.evaluation.bootstrap import UNFINISHED

    start, is_terminal = time.monotonic(), sys.stderr.isatty()
    finished: list[str] = []
    shown = start

    def step(name: str) -> None:
        nonlocal shown
        now = time.monotonic()
        if not name.endswith(UNFINISHED):
            finished.append(name)
        elif now - shown < PATIENCE:
            return
        shown = now
        line = f"{len(finished)} of {length} steps after {now - start:.0f} s: {name}"
        click.echo(f"\r{line:<79}" if is_terminal else line, err=True, nl=not is_terminal)

    yield step
    if is_terminal:
        click.echo(err=True)


def _once() -> "Callable[[logging.LogRecord], bool]":
    """Return a filter of messages that were printed before."""
    printed: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        n, text = len(printed), record.getMessage()
        printed.add(text)
        return len(printed) > n

    return is_new


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line, or `words`; invalid input ends it with one sentence."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_once())
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler])
    try:
        app(words)
    except Exception as error:
        arrow = sys.modules.get("pyarrow")  # which is imported only to read files
        expected = (ValueError, OSError, *([arrow.ArrowException] if arrow else []))
        if not isinstance(error, expected):
            raise
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        file = getattr(error, "filename", None)
        click.echo(f"persistcal: {f'{file}: ' if file else ''}{text}", err=True)
        sys.exit(1)
