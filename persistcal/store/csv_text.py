"""Detect a user's text file's encoding and delimiter, where the file makes them certain."""

import codecs
import csv
import re
from collections.abc import Collection

BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, with whose mark it begins
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
DELIMITERS = ",;\t"


def encoding_of(content: bytes) -> str:
    """Return the encoding whose byte order mark `content` begins with; UTF-8 without one."""
    marks = (mark for mark in BYTE_ORDER_MARKS if content.startswith(mark))
    return BYTE_ORDER_MARKS.get(next(marks, b""), "utf-8")


def decode(content: bytes, *, whole: bool = True) -> str:
    """Return the text of a file, or of its beginning where it is not the `whole`."""
    encoding = encoding_of(content)
    if encoding.startswith("utf-8") and b"\0" in content:
        raise ValueError(
            "holds zero bytes, as UTF-16 without a byte order mark does; save it as UTF-8"
        )
    try:
        return codecs.getincrementaldecoder(encoding)().decode(content, final=whole)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"is not {encoding} text (byte 0x{content[error.start]:02X} in line {line}), "
            "and other encodings cannot be told apart; save it as UTF-8"
        ) from error


def delimiter_of(text: str, known: Collection[str]) -> str:
    r"""Return the delimiter that parts the heading of `text` into `known` names, else a comma.

    >>> delimiter_of("question;answers\nWhy?;So, and so", {"question", "answers"})
    ';'
    """
    heading = re.split(r"[\r\n]", text.lstrip("\r\n")[:10_000], maxsplit=1)[0]
    for delimiter in DELIMITERS:
        names = next(csv.reader([heading], delimiter=delimiter), [])
        if len(names) > 1 and set(names) <= set(known):
            return delimiter
    return ","
