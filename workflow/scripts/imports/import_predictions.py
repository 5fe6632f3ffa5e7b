"""Take predictions from a file of one's own."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from persistcal.answers.predictions import warn_if_none_is_correct
from persistcal.imports.answers import imported_answers
from persistcal.imports.own_predictions import (
    OwnPredictionsError,
    check_columns,
    check_distinct,
    collect_rows,
    heading_of,
    split_rows,
)
from persistcal.store import artifacts
from persistcal.store.csv_text import encoding_of
from persistcal.store.files import sha256
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def import_predictions(
    file_path: str,
    predictions_paths: Sequence[str],
    answers_paths: Sequence[str],
    *,
    wanted: Sequence[tuple[str, str]],
    checkpoints: Mapping[str, Mapping[str, bool]],
) -> None:
    """Write the predictions of each of `wanted` to its table, its answers by checkpoint.

    Of each checkpoint of a model, `checkpoints` says whether it may equal another one.
    """
    datasets = list(dict.fromkeys(dataset for _, dataset in wanted))
    sources = {file_path: sha256(file_path)}
    log.info("%s has the SHA-256 %s", file_path, sources[file_path])
    try:
        rows = collect_rows(read_batches(file_path), checkpoints=checkpoints, datasets=datasets)
        answers: list[tuple[dict[str, str], pd.DataFrame]] = []
        parts = zip(wanted, predictions_paths, split_rows(rows, wanted), strict=True)
        for (model, dataset), path, chosen in parts:
            about = {"model": model, "dataset": dataset}
            check_distinct(chosen, checkpoints[model])
            chosen_columns = chosen[artifacts.PREDICTIONS.schema.names]
            artifacts.write(
                chosen_columns, path, artifacts.PREDICTIONS, about=about, sources=sources
            )
            log.info("Wrote %s: %d predictions", path, len(chosen))
            of_each = zip(
                checkpoints[model],
                imported_answers(chosen, list(checkpoints[model])),
                strict=True,
            )
            answers += [({**about, "checkpoint": name}, rows) for name, rows in of_each]
        for path, (about, rows) in zip(answers_paths, answers, strict=True):
            artifacts.write(rows, path, artifacts.ANSWERS, about=about)
            warn_if_none_is_correct(rows["correct"], f"answers in {path}")
    except (OwnPredictionsError, pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk, not of the file's content
        raise OwnPredictionsError(f"{file_path}: {error}.") from error


def read_batches(path: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a CSV or parquet file, a part at a time."""
    kind = Path(path.removesuffix(".gz")).suffix
    if kind == ".parquet":
        with pq.ParquetFile(path) as file:
            check_columns(file.schema_arrow.names)
            yield from file.iter_batches(batch_size=1 << 17)
    elif kind == ".csv":
        with pa.input_stream(path) as file:  # unzips what ends in .gz
            beginning = file.read(1 << 16)
        columns, delimiter = heading_of(beginning)
        # As text, so that a wrong value is met with its row and not by the reader.
        types = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()))
        with pyarrow.csv.open_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False, encoding=encoding_of(beginning).removesuffix("-sig")
            ),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter),
            convert_options=types,
        ) as reader:
            yield from reader
    else:
        raise OwnPredictionsError("is neither a .csv nor a .parquet file; save it as one")


if __name__ == "__main__":
    log_to(snakemake.log[0])
    import_predictions(
        snakemake.input.file,
        snakemake.output.predictions,
        snakemake.output.answers,
        wanted=snakemake.params.wanted,
        checkpoints=snakemake.params.checkpoints,
    )
