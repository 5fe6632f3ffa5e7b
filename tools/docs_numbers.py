"""Compare the numbers in README and docs with the results in docs/data.

A comment after a paragraph, list or table names the results in reading order:

    Δ₀ᵇ is .222 [.15, .29] for oracle and .053 for non-oracle training; 240 questions changed.

    <!-- numbers: atlas.csv {oracle,non_oracle}.contrast.delta0_balanced p40-p50.changed -->

Every name must be found, and every decimal needs a name; `-` means a decimal that is not a
result. Other whole numbers and code in backticks are skipped. A number before a % is the result
times 100. `make docs-numbers` corrects decimals. `tools/docs_data.py` writes the results.
"""

import csv
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "data"
COMMENT = re.compile(r"^<!-- numbers: (.*?)-->", re.DOTALL | re.MULTILINE)
NUMBER = r"(?<![\w.])[−-]?(?:\d{1,3}(?:,\d{3})+|\d*\.\d+|\d+)(?!\w|\.\d)"
INTERVAL = rf"[*\\]*(?:</u>)?[*\\]*\s*\[\s*({NUMBER}),\s*({NUMBER})\s?%?\s*\]"
PRINTED = re.compile(rf"({NUMBER})(\s?%)?(?:{INTERVAL})?")


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


def check(text: str) -> tuple[str, list[str]]:
    """Return a page with corrected numbers, and its errors."""
    problems: list[str] = []
    for comment in reversed(list(COMMENT.finditer(text))):
        start = len("".join(text[: comment.start()].rstrip().rpartition("\n\n")[:2]))
        block, numbers = correct(text[start : comment.start()], comment[1])
        line = f"line {text.count(chr(10), 0, start) + 1}: "
        problems = [line + problem for problem in numbers] + problems
        text = text[:start] + block + text[comment.start() :]
    return text, problems


def main() -> None:
    """Correct all pages, and print the errors."""
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]:
        text, problems = check(page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")
        for problem in problems:
            print(f"{page.relative_to(ROOT)}, {problem}")


if __name__ == "__main__":
    main()
