"""Compare the numbers in README and docs with the results in docs/data.

docs/data/numbers.yaml has, by page, the beginning of a paragraph, list or table and the names
of its results in reading order. For the paragraph

    Δ₀ᵇ is .222 [.15, .29] for oracle and .053 for non-oracle training; 240 questions changed.

the entry is

    'Δ₀ᵇ is': atlas.csv {oracle,non_oracle}.contrast.delta0_balanced p40-p50.changed

One block of the page must begin so, every name must be found, and every decimal needs a name;
`-` means a decimal that is not a result. Other whole numbers and code in backticks are skipped.
A number before a % is the result times 100. `make docs-numbers` corrects decimals.

`make docs-data ARGS="atlas lab"` copies the results of these studies to atlas.csv and lab.csv,
as docs/data/sources.yaml describes.

In docs/tour.md, `path.py:12: name` is a function with its line; these are corrected, too.
"""

import csv
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "data"
NUMBER = r"(?<![\w.])[−-]?(?:\d{1,3}(?:,\d{3})+|\d*\.\d+|\d+)(?!\w|\.\d)"
INTERVAL = rf"[*\\]*(?:</u>)?[*\\]*\s*\[\s*({NUMBER}),\s*({NUMBER})\s?%?\s*\]"
PRINTED = re.compile(rf"({NUMBER})(\s?%)?(?:{INTERVAL})?")
TOUR = ROOT / "docs" / "tour.md"
PLACE = re.compile(r"`([\w/]+\.py):(\d+): (\w+)`")


@cache
def read(file: str) -> dict[str, list[str]]:
    """Return value, low and high of each name in a CSV of docs/data."""
    path = DATA / file
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {name: numbers for name, *numbers in csv.reader(lines)}


def expand(word: str) -> list[str]:
    """Expand braces as a shell does: {a,b}.{c,d} becomes a.c, a.d, b.c and b.d."""
    if not (match := re.search(r"\{([^{}]*)\}", word)):
        return [word]
    ends = expand(word[match.end() :])
    return [
        word[: match.start()] + option + end for option in match[1].split(",") for end in ends
    ]


def rounded(text: str, value: str, scale: int) -> str:
    """Return `value` as `text` prints numbers, or `text` itself if it is `value` rounded."""
    exact, digits = float(value) * scale, len(text.partition(".")[2])
    tolerance = 0.5 * 10**-digits if digits or scale > 1 else 0  # a count is exact
    if abs(float(text.replace("−", "-").replace(",", "")) - exact) <= tolerance + 1e-9:
        return text
    new = (f"{exact:,.{digits}f}" if tolerance else str(exact)).replace("-", "−")
    return re.sub(r"^(−?)0\.", r"\1.", new) if re.match(r"[−-]?\.", text) else new


def correct(block: str, words: str) -> tuple[str, list[str]]:
    """Return a block with corrected numbers, and its errors."""
    wanted, file = [], ""
    for word in words.split():
        file = word if word.endswith(".csv") else file
        wanted += [(file, name) for name in expand(word) if name != file]
    problems: list[str] = []
    unmatched: list[str] = []
    edits: list[tuple[tuple[int, int], str]] = []
    plain = re.sub(r"`[^`]*`|\]\([^)]*\)", lambda code: " " * len(code[0]), block)
    for match in PRINTED.finditer(plain):
        is_decimal = "." in match[0]
        file, name = wanted[0] if wanted else ("", "")
        if name in ("", "-"):
            if is_decimal and not name:
                unmatched.append(f"{match[0]!r} has no name in the comment")
            wanted = wanted[is_decimal:]
            continue
        results = dict(zip((1, 3, 4), read(file).get(name, ()), strict=False))
        if not results or any(match[i] and not results[i] for i in results):
            return block, [*problems, f"docs/data/{file} lacks {match[0]!r}, {name!r}"]
        scale = 100 if match[2] else 1
        new = {match.span(i): rounded(match[i], results[i], scale) for i in results if match[i]}
        if any(plain[slice(*span)] != text for span, text in new.items()):
            if not is_decimal:
                continue  # another whole number
            problems.append(f"{match[0]!r} is {name!r}: {' '.join(results.values())}")
            edits += new.items()
        wanted = wanted[1:]
    unmatched += [f"{name!r} of {file} is not printed here" for file, name in wanted]
    if not unmatched:  # else names and numbers are out of step
        for (start, end), text in reversed(edits):
            block = block[:start] + text + block[end:]
    return block, problems + unmatched


def printed_numbers() -> dict[str, dict[str, str]]:
    """Return the names of the printed results, by page and beginning of a block."""
    pages: dict[str, dict[str, str]] = yaml.safe_load(
        (DATA / "numbers.yaml").read_text(encoding="utf-8")
    )
    return pages


def check(text: str, names: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return a page with corrected numbers, and its errors."""
    blocks = re.split(r"(\n{2,})", text)
    problems: list[str] = []
    for beginning, words in names.items():
        numbers = [i for i, block in enumerate(blocks) if block.startswith(beginning)]
        if len(numbers) != 1:
            problems.append(f"{len(numbers)} blocks begin with {beginning!r}; one must")
            continue
        blocks[numbers[0]], errors = correct(blocks[numbers[0]], words)
        problems += [f"{beginning!r}: {error}" for error in errors]
    return "".join(blocks), problems


def with_lines(text: str) -> str:
    """Return a page with the present line of each function that it names with a place."""

    def place(match: re.Match[str]) -> str:
        path, _, name = match.groups()
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        line = next(i for i, code in enumerate(lines, 1) if code.startswith(f"def {name}("))
        return f"`{path}:{line}: {name}`"

    return PLACE.sub(place, text)


def read_results(file: str) -> pd.DataFrame:
    """Read a CSV or parquet file of results."""
    path = ROOT / file
    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)


def choose(source: Mapping[str, Any]) -> pd.DataFrame:
    """Return value, low and high by name; without a column for values, count the rows.

    The names of a span are those of the least and the greatest number of its columns.
    """
    table = read_results(source["file"])
    if "questions" in source:
        table = table.merge(read_results(source["questions"]), on="question_id")
    if "where" in source:
        table = table.query(source["where"])
    rows = table.astype(object).fillna("none").to_dict("records")
    names = pd.Index(
        [re.sub(",? ", "_", source["name"].format_map(row)) for row in rows], name="name"
    )
    if "span" in source:
        numbers = table[source["span"]].set_axis(names)
        if source.get("mean"):
            numbers = numbers.mean(axis=1).to_frame()
        ends = numbers.stack().groupby(level=0, sort=False).agg(["min", "max"])
        ends = (
            (ends / source.get("unit", 1))
            .round(source.get("digits", 9))
            .stack()
            .to_frame("value")
        )
        ends.index = pd.Index(map(".".join, ends.index), name="name")
        return ends.reindex(columns=["value", "low", "high"])
    columns = {end: table.get(source.get(end)) for end in ("value", "low", "high")}
    chosen = pd.DataFrame(columns, index=table.index).astype(float).set_index(names)
    if "value" not in source:
        return chosen.fillna({"value": 1}).groupby("name", sort=False).sum(min_count=1)
    if source.get("mean"):
        return chosen.groupby("name", sort=False).mean().dropna(how="all")
    return chosen.dropna(how="all")


def export(study: str, folder: Path = DATA) -> None:
    """Write the CSV of a study."""
    sources = yaml.safe_load((DATA / "sources.yaml").read_text(encoding="utf-8"))[study]
    table = pd.concat([choose(source) for source in sources])
    if table.index.has_duplicates:
        repeated = ", ".join(table.index[table.index.duplicated()].unique()[:3])
        raise SystemExit(f"docs/data/sources.yaml: {study} has two results named {repeated}")
    table.to_csv(folder / f"{study}.csv", float_format="%.6g")


def main() -> None:
    """Correct all pages, and print the errors."""
    TOUR.write_text(with_lines(TOUR.read_text(encoding="utf-8")), encoding="utf-8")
    for page, names in printed_numbers().items():
        path = ROOT / page
        text, problems = check(path.read_text(encoding="utf-8"), names)
        path.write_text(text, encoding="utf-8")
        for problem in problems:
            print(f"{page}, {problem}")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        export(name)
    if not sys.argv[1:]:
        main()
