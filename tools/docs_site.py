"""Copy the pages of the documentation for the site that `make docs` builds.

Relative paths stay the same, so that links work as in the repository.
"""

import ast
import inspect
import shutil
import sys
from pathlib import Path

import click

import persistcal
from persistcal.api.command import app
from persistcal.api.display import Comparison
from persistcal.api.thresholds import ThresholdCheck
from persistcal.store.code import PACKAGES

ROOT = Path(__file__).resolve().parents[1]
FILES = ["*.md", "CITATION.cff", "LICENSE", "docs/*.md", "docs/*.ipynb", "docs/images/*"]
FILES += ["docs/assets/*", "config/*.md", "config/*.yaml"]
FILES += ["tests/*.md", "benchmarks/gpu.md", "resources/*/*.md"]
RESULTS = ROOT / "results" / "atlas" / "report"
EXAMPLE = """\
# A page of results

{}
"""
RESULT_CLASSES = [Comparison, ThresholdCheck]


def library_reference() -> str:
    """Return the page of the public functions, and of the classes that they return."""
    public = [*(getattr(persistcal, name) for name in persistcal.__all__), *RESULT_CLASSES]
    entries = [f"::: {entry.__module__}.{entry.__name__}\n" for entry in public]
    return "\n".join(["# Reference of the library\n", *entries])


def command_reference() -> str:
    """Return the options of each command as a page, from its help."""
    text = f"# The command persistcal\n\n{app.help}\n"
    for name, command in app.commands.items():
        context = click.Context(command, info_name=f"persistcal {name}", show_default=True)
        records = [param.get_help_record(context) for param in command.params]
        options = [f"- `{names}`: {meaning}" for names, meaning in filter(None, records)]
        examples = (command.epilog or "").removeprefix("\b\n")
        text += f"\n## persistcal {name}\n\n{inspect.cleandoc(command.help or '')}\n\n"
        text += "\n".join([*options, "", "```text", examples, "```", ""])
    return text


def map_of_modules() -> str:
    """Return the modules of each package as a page, each with its first line."""
    text = "# Packages and modules\n"
    packages = [init for name in PACKAGES for init in ROOT.glob(f"{name}/**/__init__.py")]
    for init in sorted(packages):
        for path in (init, *sorted(init.parent.glob("[a-z]*.py"))):
            about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            line = f"- `{path.stem}`: {{}}\n"
            if path == init:
                line = f"\n## {path.parent.relative_to(ROOT)}\n\n{{}}\n\n"
            text += line.format(about.splitlines()[0])
    return text


def main(folder: Path) -> None:
    """Fill `folder` with the pages, the references and, where atlas has run, its page."""
    shutil.rmtree(folder, ignore_errors=True)
    for pattern in FILES:
        for path in sorted(ROOT.glob(pattern)):
            copy = folder / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    (folder / "reference.md").write_text(library_reference(), encoding="utf-8")
    (folder / "modules.md").write_text(map_of_modules(), encoding="utf-8")
    (folder / "command.md").write_text(command_reference(), encoding="utf-8")
    text = "`make demo` makes the page of the embedded study; `make docs` then shows it here."
    if RESULTS.exists():
        shutil.copytree(RESULTS, folder / "atlas")
        text = "[The page of atlas](atlas/index.html), as `make demo` made it."
    (folder / "example.md").write_text(EXAMPLE.format(text), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
