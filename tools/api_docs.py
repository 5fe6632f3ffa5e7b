"""Write docs/api.md from the docstrings of `persistcal.api`: `make api-docs`."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from persistcal.api import checkpoints, display, predictions

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
MODULES = (predictions, display, checkpoints)
HEAD = """# persistcal in a notebook

`pip install .` in a clone installs the library alone; `pip install ".[models]"` also what the
functions of `persistcal.api.checkpoints` need. The package is typed.
[predictions.ipynb](predictions.ipynb) goes from a
table of predictions to the paper's table and figure.

This page is made from the docstrings by `make api-docs`.
"""
SECTION = re.compile(r"^(\w+)\n-{3,}\n", flags=re.MULTILINE)


def public(module: ModuleType) -> Iterator[Callable]:
    """Yield the functions and classes that `module` defines for others, in order."""
    for name, thing in vars(module).items():
        if getattr(thing, "__module__", "") == module.__name__ and not name.startswith("_"):
            yield thing


def as_markdown(docstring: str) -> str:
    r"""Turn a docstring of numpy's convention into Markdown.

    >>> print(as_markdown("Add.\\n\\nParameters\\n----------\\nx : int\\n    A number."))
    Add.
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    - `x : int`: A number.
    """
    beginning, *sections = SECTION.split(inspect.cleandoc(docstring))
    parts = [beginning.strip()]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        parts.append(f"**{title}**")
        if title in ("Examples", "References"):
            parts.append(f"```\n{body.strip()}\n```" if title == "Examples" else body.strip())
            continue
        entries = re.split(r"\n(?=\S)", body.strip())
        parts.append("\n".join(_entry(entry) for entry in entries))
    return "\n\n".join(parts)


def _entry(text: str) -> str:
    name, _, meaning = text.partition("\n")
    return f"- `{name}`: {' '.join(meaning.split())}"


def page() -> str:
    """Return the text of docs/api.md."""
    parts = [HEAD.strip()]
    for module in MODULES:
        about = inspect.getdoc(module) or ""
        parts += [f"## `{module.__name__}`", about.partition("\n")[0]]
        for thing in public(module):
            # Without types: the list of parameters has them.
            shown = [
                p.replace(annotation=p.empty)
                for p in inspect.signature(thing).parameters.values()
            ]
            lines = [str(p) for p in shown if p.kind is not p.KEYWORD_ONLY]
            keywords = [str(p) for p in shown if p.kind is p.KEYWORD_ONLY]
            every = [*lines, *(["*"] if keywords else []), *keywords]
            signature = f"{thing.__name__}({', '.join(every)})"
            parts += [f"### {thing.__name__}", f"```python\n{signature}\n```"]
            parts.append(as_markdown(inspect.getdoc(thing) or ""))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
