"""Digest of a table's content: names, types and values, however they lie in memory."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from persistcal.store.files import digest


def _column_parts(values: pa.Array) -> Iterator[Any]:
    """Yield type, length, missing values and values of a column, as bytes."""
    kind = "list" if pa.types.is_list(values.type) else values.type
    yield f"{kind} {len(values)}"
    yield values.is_null().cast(pa.uint8()).to_numpy(zero_copy_only=False).data
    if pa.types.is_list(values.type):
        yield pc.fill_null(pc.list_value_length(values), 0).to_numpy().data
        yield from _column_parts(values.flatten())
    elif pa.types.is_string(values.type):
        texts = pc.fill_null(values, "")
        lengths = pc.binary_length(texts).to_numpy()
        yield lengths.data
        _, _, characters = texts.buffers()
        yield memoryview(characters or b"")[: int(lengths.sum())]
    elif pa.types.is_boolean(values.type):
        yield pc.fill_null(values, False).cast(pa.uint8()).to_numpy().data
    else:
        yield pc.fill_null(values, 0).to_numpy().data


def _table_parts(table: pa.Table) -> Iterator[Any]:
    for name, column in zip(table.column_names, table.columns, strict=True):
        yield name
        # One array of its own, whose buffers hold nothing but its values.
        yield from _column_parts(pa.concat_arrays([*column.chunks, pa.array([], column.type)]))


def content_digest(table: pa.Table) -> str:
    """Return a digest of names, types and values, however they lie in memory."""
    return digest(_table_parts(table))
