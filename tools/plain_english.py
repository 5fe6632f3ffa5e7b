"""Report habits that make prose hard to read, and names that are neither nouns nor verbs.

`python -m tools.plain_english [PATH …]` prints both rates per 1,000 and the ten worst files,
and every hit if it reads one file. A hit is a place to look at. A folder of tests fails if one
of its rates is above the limit.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HABITS = {
    "of, first": r"^of (?!course)",
    "what as a noun": r"(?<!about )\bwhat\b(?![^.]*\?)",
    "whose": r"\bwhose\b",
    "that of, those that": r"\b(?:that|those|ones?) (?:of|that|which|in|whose)\b",
    "says, knows": r"\b(?:sa(?:ys?|id)|tells?|told|knows?|speaks?)\b(?! (?:how to|me|us))",
    "beside, alone": r"\b(?:beside|alone|alike|likewise|anew|whence|thereof|hence|forth)\b",
    "where, one, such, first": r"^(?:where|one|its|such|so|none|nothing|those|neither|nor)\b",
    "of its": r"\bof (?:its|their)\b",
    "is no": r"\b(?:is|are|was) no(?:ne|thing)?\b",
    "stands, holds": r"\b(?:stands?|lies?|goes|holds?|comes?|came)\b",
    "may": r"\bmay\b",
    "as … as": r"\bas (?!well|long|soon|of|i[nfst]|are|with|by|for|t[oh]|on|from|a)\w+ as\b",
    "of which": r"\b(?:of|in|for|by|from|with|to|at|on|among) (?:which|whom)\b",
}
RIDDLES = """about after again alike all alone anything at before beside both by each else every
everything few found hence here how it its known like many never now of on once one ones other
others ours over own said so some still such that theirs them then there these they this those
thus under what where which who whose with within without""".split()
LIMIT = 10.0  # per 1,000 words and per 1,000 names of a folder of tests


def read(path: Path) -> tuple[list[tuple[int, str]], list[str]]:
    """Return the prose of a file, as lines and texts, and the names that its code binds."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = re.sub(r"```.*?```", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
        return [(1, re.sub(r"(?m)^\s*\|.*$|\]\([^)]*\)|<!--.*?-->", "", text))], []
    lines = enumerate(text.splitlines(), 1)
    prose = [(i, words) for i, line in lines for words in re.findall(r"(?:^|\s)# (.*)", line)]
    names = list[str]()
    for node in ast.walk(ast.parse(text)) if path.suffix == ".py" else []:
        match node:
            case ast.Expr(value=ast.Constant(value=str(words))):
                prose.append((node.lineno, words))
            case ast.Raise() | ast.Call(func=ast.Attribute(attr="info" | "warning" | "error")):
                texts = [n for n in ast.walk(node) if isinstance(n, ast.Constant)]
                prose += [(n.lineno, s) for n in texts if " " in (s := str(n.value))]
            case ast.Name(name, ctx=ast.Store()) | ast.arg(name) | ast.FunctionDef(name):
                names.append(name)
    return prose, names


def sentences(line: int, text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the lower-case text of each sentence of a text, code as X."""
    text, start = re.sub(r"``[^`]*``|`[^`]*`", "X", text), 0
    for match in re.finditer(r"[.!?:;](?=\s)|\n\s*\n|\n\s*[-*|#]|\Z", text):
        body = text[start : match.end()].lstrip(" \n\t-*|#>")
        n_lines = text.count("\n", 0, match.end() - len(body))
        yield line + n_lines, " ".join(body.split()).lower()
        start = match.end()


class Rates(NamedTuple):
    """Habits per 1,000 words and riddles per 1,000 names of some files, and their places."""

    habits: float
    riddles: float
    worst: list[tuple[float, Path]]
    hits: list[str]


def count(files: list[Path]) -> Rates:
    """Count habits and riddles in files of Python, Snakemake and Markdown."""
    n_words, names, worst, hits = 0, list[str](), list[tuple[float, Path]](), list[str]()
    for path in files:
        prose, bound = read(path)
        pairs = [pair for line, text in prose for pair in sentences(line, text)]
        found = [
            f"{path}:{line}: {habit}: {sentence[:100]}"
            for line, sentence in pairs
            for habit, pattern in HABITS.items()
            if re.search(pattern, sentence)
        ]
        words = sum(len(re.findall(r"[a-z']+", sentence)) for _, sentence in pairs)
        n_words, names, hits = n_words + words, names + bound, hits + found
        worst += [(len(found) / words * 1000, path)] if words >= 80 else []
    riddles = sum(name.strip("_") in RIDDLES for name in names)
    return Rates(
        len(hits) / max(1, n_words) * 1000,
        riddles / max(1, len(names)) * 1000,
        sorted(worst)[:-11:-1],
        hits,
    )


def main(paths: list[str]) -> None:
    """Print the report on the files of git below `paths`, and check the folders of tests."""
    listed = subprocess.run(["git", "ls-files", *paths], capture_output=True, text=True)
    files = [Path(f) for f in listed.stdout.splitlines() if not f.endswith("CHANGELOG.md")]
    files = [path for path in files if path.suffix in (".py", ".smk", ".md")]
    tests = [path for path in files if path.parts[0] == "tests"]
    if code := [path for path in files if path not in tests]:
        rates = count(code)
        if len(code) == 1:
            print("".join(f"{hit}\n" for hit in rates.hits), end="")
        print(f"Habits per 1,000: {rates.habits:.1f} words, {rates.riddles:.1f} names")
        print("".join(f"{rate:7.1f}  {path}\n" for rate, path in rates.worst), end="")
    too_many = list[str]()
    for folder in sorted({path.parent for path in tests}):
        rates = count([path for path in tests if path.parent == folder])
        if max(rates.habits, rates.riddles) > LIMIT:
            line = f"{folder}: {rates.habits:.1f} words, {rates.riddles:.1f} names"
            too_many += [line, *rates.hits]
    if too_many:
        sys.exit("\n".join([f"Tests with more than {LIMIT} per 1,000:", *too_many]))


if __name__ == "__main__":
    main(sys.argv[1:])
