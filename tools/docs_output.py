"""Renew the output of the commands in the guides: ``make docs-output``.

A block ``console`` has commands after ``$`` and their output. The commands run as shown, with
their default settings. A line … omits any number of lines. A test runs the commands
and compares their output with every block.
"""

import contextlib
import io
import re
import subprocess
import tempfile
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from textwrap import fill

from persistcal.api.command import main

ROOT = Path(__file__).parents[1]
PAGES = "api judge module reproduce thresholds tutorial your-data your-estimator your-models"
GUIDES = ["README.md", *(f"docs/{name}.md" for name in PAGES.split())]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
WIDTH = 100  # of a line in a guide
OMITTED = re.compile(r"^…\n", flags=re.MULTILINE)


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page, except blocks that load a model."""
    texts = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [code for kind, code in texts if kind == language and "persistcal.load(" not in code]


def commands(code: str) -> list[tuple[str, str]]:
    """Return each command of a block with the output shown below it."""
    parts = re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]
    split = (part.replace("\\\n", " ").partition("\n") for part in parts)
    return [(command, output) for command, _, output in split]


@contextlib.contextmanager
def guide_folder() -> Iterator[None]:
    """Work in a new folder that has the project's `config`, as the guides assume."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("config").symlink_to(ROOT / "config")
        yield


def output_of(command: str) -> str:
    """Return the output of a command. `persistcal` runs in this process."""
    words = command.split()
    if words[0] != "persistcal":
        return subprocess.check_output(command, shell=True, text=True)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        try:
            main(words[1:])
        except SystemExit as end:
            if end.code not in (0, 3, 4):
                raise RuntimeError(f"{command} ends with status {end.code}") from end
    return output.getvalue()


def is_printed(text: str, output: str) -> bool:
    r"""Return whether all parts of `text` are in the output, in this order.

    Only the ends of lines can differ, because pages have shorter lines.

    >>> is_printed("a .5\n…\nb [.4,\n.6]\n", "a .5\nc\nb [.4, .6]\n")
    True
    >>> is_printed("a .5\n…\nb [.4, .7]\n", "a .5\nc\nb [.4, .6]\n")
    False
    """
    rest = " ".join(["", *output.split(), ""])
    for part in OMITTED.split(text):
        words = " ".join(["", *part.split(), ""])
        if words not in rest:
            return False
        rest = " " + rest.split(words, 1)[1]
    return True


def renew(shown: str, output: str) -> str:
    r"""Return `shown` with the lines of the output that are most like each part's.

    >>> renew("a .5\n…\nb [.4, .6]\n", "a .5\nc\nb [.4, .7]\n")
    'a .5\n…\nb [.4, .7]\n'
    """
    lines, start, parts = output.splitlines(), 0, []
    for part in OMITTED.split(shown):
        text = part.strip("\n")
        if text and not is_printed(text, output):
            likeness = {
                (i, k): SequenceMatcher(
                    None, text.split(), " ".join(lines[i:k]).split()
                ).ratio()
                for i in range(start, len(lines))
                for k in range(i + 1, len(lines) + 1)
            }
            first, start = max(likeness, key=lambda window: likeness[window])
            kept = "\n".join(
                fill(x, WIDTH) if len(x) > WIDTH else x for x in lines[first:start]
            )
            part = part.replace(text, kept)
        parts.append(part)
    return "…\n".join(parts)


def write_page(page: str) -> None:
    """Replace the outputs of a page that the commands no longer print."""
    text = (ROOT / page).read_text(encoding="utf-8")
    with guide_folder():
        for code in blocks(page, "console"):
            renewed = code
            for command, shown in commands(code):
                output = output_of(command)
                if not is_printed(shown, output):
                    renewed = renewed.replace(shown, renew(shown, output), 1)
            text = text.replace(code, renewed, 1)
    (ROOT / page).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for page in GUIDES:
        write_page(page)
