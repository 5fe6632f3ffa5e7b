"""The tables that rules hand to each other: one pyarrow schema each.

`read` and `write` refuse any other shape, so that a wrong table stops at the
rule that made it and not three rules later. A parquet file carries a digest of what
is in it, so that a bit that has flipped on a disk stops there too, and says what it is
about: of which model, checkpoint or dataset its rows are.
"""

import hashlib
import io
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from persistcal.store.files import is_edited, keep_digest, written_whole

log = logging.getLogger(__name__)


class Table(NamedTuple):
    """Name, schema and key of an artifact.

    Attributes
    ----------
    name : str
        Plural noun; also the artifact's folder below the results.
    rule : str
        The rule that makes it; of several, the dataset's source decides which.
    schema : pyarrow.Schema
        Columns in order; a field that is not nullable holds no missing values.
    key : tuple of str
        Columns whose values identify a row.
    about : tuple of str
        What each file says beside its columns, the same for all rows, such as the model
        that the rows are of.
    """

    name: str
    rule: str
    schema: pa.Schema
    key: tuple[str, ...]
    about: tuple[str, ...] = ()

    def write(self, frame: pd.DataFrame, path: str, about: Mapping[str, Any]) -> None:
        """Write `frame`, as CSV or parquet; columns that it lacks are taken from `about`.

        Of a user's own files that it is made from, ``frame.attrs["sources"]`` holds the
        SHA-256.

        Raises
        ------
        TableError
            When its columns and `about` say different things of what it is about.
        """
        columns = [*self.about, *self.schema.names]
        sources = frame.attrs.get("sources")
        frame = frame.assign(**{n: about[n] for n in columns if n in about and n not in frame})
        for name in self.about:
            if name in frame.columns and (frame[name].astype(str) != str(about[name])).any():
                raise TableError(
                    f"{path}: {self.rule} was to write rows of {name} {about[name]!r} and also "
                    f"has some of {frame[name].astype(str).unique().tolist()}."
                )
        frame = frame.drop(columns=[n for n in self.about if n not in self.schema.names])
        if Path(path).suffix == ".csv":
            write_csv(frame, path, self)
        else:
            write(frame, path, self, about=about, sources=sources)


class TableFiles(NamedTuple):
    """A table as people read it: the name of its files, and their text (LaTeX or none)."""

    name: str
    csv: str
    tex: str

    @classmethod
    def read(cls, path: str) -> Self:
        """Read the CSV at `path`, and the LaTeX beside it."""
        csv, tex = Path(path), Path(path).with_suffix(".tex")
        text = tex.read_text(encoding="utf-8") if tex.exists() else ""
        return cls(csv.stem, csv.read_text(encoding="utf-8"), text)

    def rows(self, missing: Any = None) -> pd.DataFrame:  # noqa: ANN401
        """Return the rows of the CSV, where `missing` texts (of pandas) are no value."""
        return pd.read_csv(io.StringIO(self.csv), keep_default_na=False, na_values=missing)


class TableError(ValueError):
    """A table does not have the shape that its rule promises."""


def _schema(optional: tuple[str, ...] = (), **types: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(n, t, nullable=n in optional) for n, t in types.items()])


TEXT, INT, REAL, FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()
TEXTS = pa.list_(pa.string())
ANSWERED = ("model", "checkpoint", "dataset")

QUESTIONS = Table(
    "questions",
    "read_questions, prepare_triviaqa, prepare_jeopardy, prepare_bioasq, prepare_atlas or "
    "prepare_elements",
    _schema(
        question_id=TEXT,
        index=INT,
        split=TEXT,  # train, test, few_shot or unused
        question=TEXT,
        references=TEXTS,
        any_of=FLAG,
        category=TEXT,
        excluded=FLAG,
    ),
    ("question_id",),
    ("dataset",),
)
FACTS = Table(
    "facts",
    "prepare_atlas or prepare_elements",
    _schema(
        question_id=TEXT,
        relation=TEXT,
        question=TEXT,
        answer=TEXT,
        group=TEXT,  # what the drift of a pre-training re-weights
        weight=REAL,
        split=TEXT,  # of the question that asks for it; "unused" where none does
    ),
    ("question_id",),
    ("dataset",),
)
BEAMS = Table(
    "beams",
    "generate_beams",
    # of beams or samples: tokens with the one that ended it, and their mean entropy in nats;
    # answers of one's own may come without any of the numbers
    _schema(
        ("logprob", "n_tokens", "entropy"),
        question_id=TEXT,
        beam=INT,
        text=TEXT,
        logprob=REAL,
        n_tokens=INT,
        entropy=REAL,
    ),
    ("question_id", "beam"),
    ANSWERED,
)
CLUSTERS = Table(
    "clusters",
    "cluster_answers",
    _schema(question_id=TEXT, cluster=INT, answer=TEXT, probability=REAL, members=TEXTS),
    ("question_id", "cluster"),
    ANSWERED,
)
ENTAILMENTS = Table(
    "entailments",
    "cluster_answers",
    # whether `one`, as an answer to the question, entails `other`
    _schema(question=TEXT, one=TEXT, other=TEXT, entailed=FLAG),
    ("question", "one", "other"),
)
LABELS = Table(
    "labels",
    "judge_answers",
    _schema(question_id=TEXT, cluster=INT, label=TEXT, source=TEXT),
    ("question_id", "cluster"),
    ANSWERED,
)
GIVEN_LABELS = Table(
    "given_labels",
    "import_answers",
    # of answers that came with one; `answer` without case and full stops
    _schema(question_id=TEXT, answer=TEXT, label=TEXT),
    ("question_id", "answer"),
    ("dataset",),
)
ANSWERS = Table(
    "answers",
    "judge_answers",
    # of the train and test split; imported predictions have neither texts nor probabilities
    _schema(
        ("answer", "probability"),
        question_id=TEXT,
        split=TEXT,
        answer=TEXT,
        probability=REAL,
        correct=FLAG,
    ),
    ("question_id",),
    ANSWERED,
)
TRAINING = Table(
    "training",
    "train_adapters",
    _schema(step=INT, loss=REAL, lr=REAL, seconds=REAL),
    ("step",),
    ("model", "dataset", "recipe", "trained_on", "seed"),
)
SCORES = Table(
    "scores",
    "score_answers",
    _schema(
        answers_of=TEXT,
        recipe=TEXT,
        trained_on=TEXT,
        train_dataset=TEXT,
        seed=INT,
        question_id=TEXT,
        confidence=REAL,
    ),
    ("answers_of", "recipe", "trained_on", "train_dataset", "seed", "question_id"),
    (*ANSWERED, "answers"),
)
VERIFIED = Table(
    "verified",
    "score_with_verifier",
    _schema(checkpoint=TEXT, question_id=TEXT, confidence=REAL),  # whose answer, and P(yes)
    ("checkpoint", "question_id"),
    ("verifier", "model", "dataset"),
)
PREDICTIONS = Table(
    "predictions",
    "estimate_confidences",
    _schema(
        checkpoint=TEXT,
        question_id=TEXT,
        train_dataset=TEXT,
        estimator=TEXT,
        seed=INT,
        confidence=REAL,
        correct=FLAG,
    ),
    ("checkpoint", "question_id", "train_dataset", "estimator", "seed"),
    ("model", "dataset"),
)
CONTRAST_SETS = Table(
    "contrast_sets",
    "count_contrast_sets",
    _schema(
        model=TEXT,
        dataset=TEXT,
        earlier=TEXT,
        later=TEXT,
        size=INT,
        improvement=INT,
        regression=INT,
        kept=FLAG,
    ),
    ("model", "dataset", "earlier", "later"),
)
METRICS = Table(
    "metrics",
    "compute_metrics",
    _schema(
        ("value",),
        model=TEXT,
        dataset=TEXT,
        train_dataset=TEXT,
        estimator=TEXT,
        conditioning=TEXT,  # odds or fitted
        scope=TEXT,  # contrast or full
        metric=TEXT,
        seed=TEXT,  # a seed, or "mean"
        value=REAL,
        pairs=TEXT,  # that define a contrast metric, "1 of 3"; empty of scope full
    ),
    (
        "model",
        "dataset",
        "train_dataset",
        "estimator",
        "conditioning",
        "scope",
        "metric",
        "seed",
    ),
)
SIGNIFICANCE = Table(
    "significance",
    "compare_estimators",
    _schema(
        ("difference", "lower_5pct", "lower_2_5pct", "upper_97_5pct", "p_value", "p_holm"),
        model=TEXT,
        dataset=TEXT,
        train_dataset=TEXT,
        block=TEXT,
        conditioning=TEXT,
        scope=TEXT,
        metric=TEXT,
        best=TEXT,
        other=TEXT,
        difference=REAL,
        lower_5pct=REAL,
        significant=FLAG,
        lower_2_5pct=REAL,
        upper_97_5pct=REAL,
        p_value=REAL,
        p_holm=REAL,
    ),
    (
        "model",
        "dataset",
        "train_dataset",
        "block",
        "conditioning",
        "scope",
        "metric",
        "best",
        "other",
    ),
)
REPLICATES = Table(
    "replicates",
    "resample_metrics",
    _schema(
        ("value",),
        train_dataset=TEXT,
        estimator=TEXT,
        conditioning=TEXT,
        scope=TEXT,
        metric=TEXT,
        value=REAL,  # on the data, mean over seeds
        replicates=pa.list_(REAL),
        drawn=TEXT,  # digest of what was drawn; replicates are paired where it is equal
    ),
    ("train_dataset", "estimator", "conditioning", "scope", "metric"),
    ("model", "dataset"),
)
INTERVALS = Table(
    "intervals",
    "resample_metrics",
    _schema(
        ("value", "lower_2_5pct", "upper_97_5pct"),
        model=TEXT,
        dataset=TEXT,
        train_dataset=TEXT,
        estimator=TEXT,
        conditioning=TEXT,
        scope=TEXT,
        metric=TEXT,
        value=REAL,  # mean over seeds
        lower_2_5pct=REAL,
        upper_97_5pct=REAL,
    ),
    ("model", "dataset", "train_dataset", "estimator", "conditioning", "scope", "metric"),
)
ACCURACIES = Table(
    "accuracies",
    "compute_accuracies",
    _schema(model=TEXT, checkpoint=TEXT, dataset=TEXT, split=TEXT, accuracy=REAL, n=INT),
    ("model", "checkpoint", "dataset"),
)
PAPER_COMPARISON = Table(
    "paper_comparison",
    "compare_with_paper",
    _schema(
        ("difference", "lower", "upper", "inside", "ours", "bold", "underline"),
        table=TEXT,
        model=TEXT,
        dataset=TEXT,
        train_dataset=TEXT,
        estimator=TEXT,
        conditioning=TEXT,
        scope=TEXT,
        metric=TEXT,
        ours=REAL,
        paper=REAL,
        difference=REAL,  # ours - paper
        lower=REAL,  # our 95 % bootstrap interval
        upper=REAL,
        inside=FLAG,
        bold=FLAG,  # best of its block
        paper_bold=FLAG,
        underline=FLAG,  # not significantly worse
        paper_underline=FLAG,
        settings=TEXT,
    ),
    (
        "table",
        "model",
        "dataset",
        "train_dataset",
        "estimator",
        "conditioning",
        "scope",
        "metric",
    ),
)
TRANSFER = Table(
    "transfer",
    "measure_transfer",
    _schema(
        ("auc",),
        model=TEXT,
        dataset=TEXT,
        recipe=TEXT,
        trained_on=TEXT,  # the training set's name
        checkpoint=TEXT,  # whose weights score its own answers
        auc=REAL,  # full set, mean over seeds
        n=INT,  # answers
    ),
    ("model", "dataset", "recipe", "trained_on", "checkpoint"),
)
VARIANCES = Table(
    "variances",
    "measure_variance",
    _schema(question_id=TEXT, layer=INT, variance=REAL),  # layers from 1
    ("question_id", "layer"),
    ANSWERED,
)
CONFOUNDS = Table(
    "confounds",
    "measure_confounds",
    _schema(
        (
            "delta0_balanced",
            "lower_2_5pct",
            "upper_97_5pct",
            "contrast_auc",
            "full_auc",
        ),
        model=TEXT,
        dataset=TEXT,
        attribute=TEXT,  # what the baseline knows of a question
        n_groups=INT,
        delta0_balanced=REAL,
        lower_2_5pct=REAL,
        upper_97_5pct=REAL,
        contrast_auc=REAL,
        full_auc=REAL,
    ),
    ("model", "dataset", "attribute"),
)
PAIRS = Table(
    "pairs",
    "draw_distance",
    _schema(
        ("value",),  # undefined, for example without regressions
        model=TEXT,
        dataset=TEXT,
        train_dataset=TEXT,
        estimator=TEXT,
        earlier=TEXT,
        later=TEXT,
        distance=INT,  # evaluation checkpoints from the one to the other
        size=INT,
        metric=TEXT,
        value=REAL,
    ),
    ("model", "dataset", "train_dataset", "estimator", "earlier", "later", "metric"),
)
WORLDS = Table(
    "worlds",
    "summarise_worlds",
    _schema(
        ("mean", "sd", "least", "greatest"),
        world_of=TEXT,  # the models' common name
        dataset=TEXT,
        train_dataset=TEXT,
        estimator=TEXT,
        scope=TEXT,
        metric=TEXT,
        mean=REAL,  # over models that differ in the seed of their pre-training
        sd=REAL,
        least=REAL,
        greatest=REAL,
        n=INT,
    ),
    ("world_of", "dataset", "train_dataset", "estimator", "scope", "metric"),
)
HEADROOM = Table(
    "headroom",
    "measure_headroom",
    _schema(
        ("headroom", "lower_2_5pct", "upper_97_5pct", "error_rate"),
        model=TEXT,
        dataset=TEXT,
        headroom=REAL,  # contrast AUC of the oracle - that of the verifier
        lower_2_5pct=REAL,
        upper_97_5pct=REAL,
        error_rate=REAL,  # of the verifier's backbone on the contrast questions
        n=INT,  # questions in a kept contrast set
    ),
    ("model", "dataset"),
)
WEIGHT_SIMILARITIES = Table(
    "weight_similarities",
    "compare_weights",
    _schema(model=TEXT, earlier=TEXT, later=TEXT, cosine=REAL, n_weights=INT),
    ("model", "earlier", "later"),
)
AUDIT_AGREEMENTS = Table(
    "audit_agreements",
    "summarise_audit",
    _schema(
        ("share", "lower", "upper", "kappa"),
        group=TEXT,  # contrast, non_contrast or all
        measure=TEXT,
        count=INT,
        n=INT,
        share=REAL,
        lower=REAL,  # 95 % Wilson interval
        upper=REAL,
        kappa=REAL,  # of agreement with the judge
    ),
    ("group", "measure"),
)
MISSING = Table(
    "missing",
    "import_release",
    _schema(model=TEXT, dataset=TEXT, estimator=TEXT, checkpoint=TEXT, path=TEXT),
    ("model", "dataset", "estimator", "checkpoint", "path"),
)


# What scripts are annotated with: a frame that is read and written as one of these tables
Questions = Annotated[pd.DataFrame, QUESTIONS]
Facts = Annotated[pd.DataFrame, FACTS]
Beams = Annotated[pd.DataFrame, BEAMS]
Clusters = Annotated[pd.DataFrame, CLUSTERS]
Entailments = Annotated[pd.DataFrame, ENTAILMENTS]
Labels = Annotated[pd.DataFrame, LABELS]
GivenLabels = Annotated[pd.DataFrame, GIVEN_LABELS]
Answers = Annotated[pd.DataFrame, ANSWERS]
Training = Annotated[pd.DataFrame, TRAINING]
Scores = Annotated[pd.DataFrame, SCORES]
Verified = Annotated[pd.DataFrame, VERIFIED]
Predictions = Annotated[pd.DataFrame, PREDICTIONS]
ContrastSets = Annotated[pd.DataFrame, CONTRAST_SETS]
Metrics = Annotated[pd.DataFrame, METRICS]
Significance = Annotated[pd.DataFrame, SIGNIFICANCE]
Replicates = Annotated[pd.DataFrame, REPLICATES]
Intervals = Annotated[pd.DataFrame, INTERVALS]
Accuracies = Annotated[pd.DataFrame, ACCURACIES]
PaperComparison = Annotated[pd.DataFrame, PAPER_COMPARISON]
Transfer = Annotated[pd.DataFrame, TRANSFER]
Variances = Annotated[pd.DataFrame, VARIANCES]
Confounds = Annotated[pd.DataFrame, CONFOUNDS]
Pairs = Annotated[pd.DataFrame, PAIRS]
Worlds = Annotated[pd.DataFrame, WORLDS]
Headroom = Annotated[pd.DataFrame, HEADROOM]
WeightSimilarities = Annotated[pd.DataFrame, WEIGHT_SIMILARITIES]
AuditAgreements = Annotated[pd.DataFrame, AUDIT_AGREEMENTS]
Missing = Annotated[pd.DataFrame, MISSING]


def check(frame: pd.DataFrame, table: Table, where: str | Path) -> pa.Table:
    """Return `frame` as an arrow table of the shape of `table`.

    Raises
    ------
    TableError
        When a column is missing, unknown, of another type or holds missing
        values, or when two rows have the same key. The message names `where`,
        the column or the rows, and the rule that should have made it.
    """

    def refuse(what: str) -> TableError:
        return TableError(f"{where}: {what} (table '{table.name}', made by {table.rule}).")

    names = table.schema.names
    if missing := [name for name in names if name not in frame.columns]:
        raise refuse(f"column {missing[0]!r} is missing; it needs {', '.join(names)}")
    if unknown := [name for name in frame.columns if name not in names]:
        raise refuse(f"unknown column {unknown[0]!r}; it may hold only {', '.join(names)}")
    for field in table.schema:
        if not field.nullable and frame[field.name].isna().any():
            empty = int(frame[field.name].isna().to_numpy().argmax())
            raise refuse(f"column {field.name!r} has no value in row {empty}")
    if (twice := frame.duplicated(list(table.key))).any():
        row = frame.loc[twice, list(table.key)].iloc[0].to_dict()
        raise refuse(f"two rows have the key {row}")
    try:
        return pa.Table.from_pandas(frame[names], schema=table.schema, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise refuse(f"a column has the wrong type: {error}") from error


def empty(table: Table) -> pd.DataFrame:
    """Return a `table` without rows."""
    return table.schema.empty_table().to_pandas()


def content_digest(table: pa.Table) -> str:
    """Return a SHA-256 digest of names, types and values, however they lie in memory."""
    digest = hashlib.sha256()

    def add(values: pa.Array) -> None:
        kind = "list" if pa.types.is_list(values.type) else values.type
        digest.update(f"{kind} {len(values)}".encode())
        digest.update(values.is_null().cast(pa.uint8()).to_numpy(zero_copy_only=False))
        if pa.types.is_list(values.type):
            digest.update(pc.fill_null(pc.list_value_length(values), 0).to_numpy())
            add(values.flatten())
        elif pa.types.is_string(values.type):
            texts = pc.fill_null(values, "")
            lengths = pc.binary_length(texts).to_numpy()
            digest.update(lengths)
            _, _, characters = texts.buffers()
            digest.update(memoryview(characters or b"")[: int(lengths.sum())])
        elif pa.types.is_boolean(values.type):
            digest.update(pc.fill_null(values, False).cast(pa.uint8()).to_numpy())
        else:
            digest.update(pc.fill_null(values, 0).to_numpy())

    for name, column in zip(table.column_names, table.columns, strict=True):
        digest.update(name.encode())
        # One array of its own, whose buffers hold nothing but its values.
        add(pa.concat_arrays([*column.chunks, pa.array([], column.type)]))
    return digest.hexdigest()


def write(
    frame: pd.DataFrame,
    path: str | Path,
    table: Table,
    *,
    about: Mapping[str, str] | None = None,
    sources: Mapping[str, str] | None = None,
) -> None:
    """Write `frame` to the parquet file `path`, whole or not at all.

    Parameters
    ----------
    frame : DataFrame
    path : str or Path
    table : Table
        The shape that `frame` must have.
    about : mapping of str to str, optional
        What the rows are about; of it `table.about` is kept.
    sources : mapping of str to str, optional
        Of a user's own files that the table is made from, the SHA-256.
    """
    content = check(frame, table, path)
    said = json.dumps({name: str(about[name]) for name in table.about}) if about else ""
    marks = {b"sha256": _seal(content, said), b"about": said.encode()}
    if sources:
        marks[b"sources"] = json.dumps(dict(sources)).encode()
    with written_whole(path) as part:
        marked = content.replace_schema_metadata(marks)
        pq.write_table(marked, part, write_page_checksum=True)


def read(path: str | Path, table: Table) -> pd.DataFrame:
    """Read the parquet file `path` and check that it is a `table`, as it was written."""
    return _read(path, table)[0]


def read_about(paths: str | Path | Sequence[str | Path], table: Table) -> pd.DataFrame:
    """Read files of a `table` one below the other, with columns that say what each is about.

    Raises
    ------
    TableError
        When a file is no such table, or does not say what it is about.
    """
    several = [paths] if isinstance(paths, str | Path) else paths
    frames = []
    for path in several:
        if Path(path).suffix == ".csv":
            frames.append(read_csv(path, table))
            continue
        frame, about = _read(path, table)
        if missing := [name for name in table.about if name not in about]:
            raise TableError(
                f"{path}: the file does not say of which {missing[0]} it is, as an earlier "
                f"version wrote it; delete it, so that {table.rule} makes it again."
            )
        if frame.empty:
            log.warning("%s has no rows", path)
        frames.append(frame.assign(**about)[[*about, *table.schema.names]])
    columns = [*table.about, *table.schema.names]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def _read(path: str | Path, table: Table) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the rows of a parquet file, and what they are about."""
    try:
        content = pq.read_table(path, page_checksum_verification=True)
        marks = content.schema.metadata or {}
        said = marks.get(b"about", b"").decode()
        written = marks.get(b"sha256")
        whole = written is not None and _seal(content, said) == written
    except (OSError, ValueError, pa.ArrowException) as error:
        raise TableError(f"{path}: not a readable parquet file ({error}).") from error
    if not whole:
        what = "its content is not what was written" if written else "it has lost its digest"
        raise TableError(
            f"{path}: the file is damaged or of another program, as {what}; delete it, so that "
            f"{table.rule} makes it again."
        )
    frame = check(content.replace_schema_metadata(None).to_pandas(), table, path).to_pandas()
    return frame, json.loads(said or "{}")


def _seal(content: pa.Table, about: str) -> bytes:
    """Return a digest of the rows and of what they are about."""
    rows = content_digest(content).encode()
    return hashlib.sha256(rows + about.encode()).hexdigest().encode() if about else rows


def sources(path: str | Path) -> dict[str, str]:
    """Return the SHA-256 of each user's file that the table at `path` was made from."""
    marks = pq.read_schema(path).metadata or {}
    return json.loads(marks.get(b"sources", b"{}"))


def write_csv(frame: pd.DataFrame, path: str | Path, table: Table) -> None:
    """Write `frame` to the CSV file `path`, whole or not at all; missing values are empty."""
    content = check(frame, table, path).to_pandas()
    with written_whole(path) as part:
        content.to_csv(part, index=False)
    keep_digest(path)


def read_csv(path: str | Path, table: Table) -> pd.DataFrame:
    """Read the CSV file `path` and check that it is a `table`, as it was written."""
    if is_edited(path):
        raise TableError(
            f"{path}: the file has changed since it was written; delete it, so that "
            f"{table.rule} makes it again."
        )
    types = pyarrow.csv.ConvertOptions(column_types=table.schema, strings_can_be_null=False)
    try:
        frame = pyarrow.csv.read_csv(path, convert_options=types).to_pandas()
    except (OSError, pa.ArrowInvalid) as error:
        raise TableError(f"{path}: not a readable CSV of {table.name} ({error}).") from error
    return check(frame, table, path).to_pandas()
