"""Write the reference pages config/README.md, of all keys, and docs/outputs.md, of all columns.

The schema of the config, its defaults and the docstrings of estimators give the first page. The
schemas of tables and docs/data/columns.yaml give the second page. A person writes the beginning
of each page, up to the first section. `make config-readme` and `make outputs` run this module,
and tests compare both pages.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from persistcal.confidence.estimators.catalogue import ESTIMATORS, file_of
from persistcal.questions.catalogue import SHARED_KEYS
from persistcal.store import artifacts
from persistcal.store.tables import TYPES, Table
from study.config_files import over_defaults
from study.schema import load_schema, resolved

ROOT = Path(__file__).resolve().parents[1]
CONFIG_PAGE, OUTPUTS_PAGE = ROOT / "config" / "README.md", ROOT / "docs" / "outputs.md"
NEEDS = {
    "several_answers": "several answers to a question",
    "logprob": "log-probabilities",
    "n_tokens": "numbers of tokens",
    "entropy": "entropies of tokens",
    "min_logprob": "log-probabilities of tokens",
    "self_certainty": "distributions of tokens",
    "margin": "distributions of tokens",
}
KINDS = {"string": "text", "null": "null", "object": "mapping", "boolean": "true or false"}


def value_of(node: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the allowed values of `node` in words."""
    node = resolved(node, schema)
    if "enum" in node:
        return ", ".join(f"`{choice}`" for choice in node["enum"])
    if "oneOf" in node:
        return ", or ".join(value_of(choice, schema) for choice in node["oneOf"])
    if node.get("type") == "array":
        return f"list of {value_of(node.get('items', {}), schema)}"
    kinds = node.get("type", "any")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return " or ".join(KINDS.get(str(kind), str(kind)) for kind in kinds)


def rows(
    node: dict[str, Any], schema: dict[str, Any], path: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the keys below `path` with their descriptions."""
    node = resolved(node, schema)
    for name, child in node.get("properties", {}).items():
        yield f"{path}{name}", resolved(child, schema)
        yield from rows(child, schema, f"{path}{name}.")
    if isinstance(node.get("additionalProperties"), dict):
        yield from rows(node["additionalProperties"], schema, f"{path}*.")
    if "items" in node:
        yield from rows(node["items"], schema, f"{path[:-1]}[].")
    for choice in node.get("oneOf", []):
        yield from rows(choice, schema, path)


def default_of(key: str, defaults: dict[str, Any]) -> str:
    """Return the default of `key` as YAML on one line, or "" if it is long or a mapping."""
    value: Any = defaults
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return ""
        value = value[part]
    text = yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n")
    return f"`{text.strip()}`" if not isinstance(value, dict) and len(text) < 80 else ""


def needs(node: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each condition under which `node` needs further keys."""
    for rule in node.get("allOf", []):
        [(key, needed_value)] = rule["if"]["properties"].items()
        listed = ", ".join(f"`{name}`" for name in rule["then"]["required"])
        names = rule["then"].get("propertyNames", {}).get("enum", [])
        further = [n for n in names if n not in (*rule["then"]["required"], *SHARED_KEYS)]
        read = f" and can have {', '.join(f'`{name}`' for name in further)}" if further else ""
        yield f"With `{key}: {needed_value['const']}` it needs {listed}{read}."


def section(name: str, schema: dict[str, Any], defaults: dict[str, Any]) -> str:
    """Return the part of the page about one top-level key."""
    node = resolved(schema["properties"][name], schema)
    children = list(rows(node, schema, f"{name}."))
    text = f"## `{name}`\n\n{node['description'].strip()}"
    if not children:
        return f"{text} ({value_of(node, schema)})\n"
    entries = node.get("additionalProperties")
    if isinstance(entries, dict):
        text += "".join(f"\n{sentence}" for sentence in needs(resolved(entries, schema)))
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for key, child in children:
        meaning = " ".join(child.get("description", "").split())
        default = default_of(key, defaults)
        lines.append(f"| `{key}` | {value_of(child, schema)} | {default} | {meaning} |")
    return f"{text}\n\n" + "\n".join(lines) + "\n"


def needs_of(name: str, entry: dict[str, Any]) -> str:
    """Return a sentence about the inputs of an estimator besides a checkpoint's answers."""
    registration = ESTIMATORS[entry["function"]]
    needs = list(dict.fromkeys(NEEDS[column] for column in registration.needs))
    needs += ["the model's weights"] * registration.reads_weights
    fitted = registration.fitted or entry.get("fitted")
    needs += ["training checkpoints with a train split"] * bool(fitted)
    needs += ["weights or an API that replies"] * ("asks" in registration.required)
    needs += ["a verifier"] * ("verifier" in registration.required)
    return f" Needs {', '.join(needs)}." if needs else ""


def definition(name: str, entry: dict[str, Any]) -> str:
    """Return the docstring of an estimator, or the settings that define it."""
    if "recipe" in entry:
        values = {key: value for key, value in entry.items() if key != "label"}
        text = yaml.safe_dump(values, default_flow_style=True, width=1000).strip()
        return f"an adapter's mean digit over nine: `{text}`. Needs weights and a train split."
    function = entry["function"]
    if function != name and function in ("self_consistency", "entropy_probe", "verifier"):
        varied = ", ".join(
            f"`{key}: {entry[key]}`"
            for key in ("posthoc", "fit_at", "verifier")
            if key in entry
        )
        return f"`{function}` with {varied}.{needs_of(name, entry)}"
    body = ast.parse(file_of(function).read_text(encoding="utf-8")).body
    [node] = [n for n in body if isinstance(n, ast.FunctionDef) and n.name == function]
    text = " ".join((ast.get_docstring(node) or "").split()).replace("``", "`")
    return text.removeprefix("Return ") + needs_of(name, entry)


def estimators(defaults: dict[str, Any]) -> str:
    """Return the part of the page about the estimators that a study can name."""
    lines = [
        f"- `{name}` ({entry.get('label') or ESTIMATORS[entry['function']].label}): "
        f"{definition(name, entry)}"
        for name, entry in defaults["estimators"].items()
    ]
    heading = "## Estimators by name\n\n"
    text = "Names for `study.estimators`, with what each returns and needs.\n\n"
    return heading + text + "\n".join(lines) + "\n"


def introduction(page: Path) -> str:
    """Return the beginning of a page, which is written by hand."""
    return page.read_text(encoding="utf-8").partition("## ")[0]


def config_page() -> str:
    """Return the whole reference of the config."""
    schema = load_schema()
    defaults: dict[str, Any] = {}
    for name in ("config.yaml", "tables.yaml"):
        defaults |= yaml.safe_load((ROOT / "config" / name).read_text(encoding="utf-8"))
    parts = [section(name, schema, defaults) for name in schema["properties"]]
    return introduction(CONFIG_PAGE) + "\n".join([*parts, estimators(over_defaults({}, ROOT))])


MEANINGS = yaml.safe_load((ROOT / "docs" / "data" / "columns.yaml").read_text(encoding="utf-8"))
NAMES_OF_TYPES = {kind: name for name, kind in TYPES.items()}
Row = tuple[str, str, str]  # column, type, meaning


def all_tables() -> list[Table]:
    """Return every table by name."""
    tables = {t.name: t for t in vars(artifacts).values() if isinstance(t, Table)}
    return [tables[name] for name in sorted(tables)]


def meanings_of(table: str) -> dict[str, str]:
    """Return the meanings of the columns of a table, or of the `shared` columns."""
    listed = MEANINGS.get(table, {}).items()
    return {name: text for names, text in listed for name in names.split(", ")}


def rows_of(table: Table) -> list[Row]:
    """Return name, type and meaning of each column; refuse a column without a meaning."""
    meanings = meanings_of("shared") | meanings_of(table.name)
    kinds = dict.fromkeys(table.file_columns, "text")
    kinds |= {field.name: NAMES_OF_TYPES[field.type] for field in table.schema}
    rows = []
    for name, kind in kinds.items():
        if name not in meanings:
            raise KeyError(
                f"column {name!r} of table {table.name!r} has no meaning; add it in "
                "docs/data/columns.yaml and run `make outputs`"
            )
        rows.append((name, kind, meanings[name]))
    if unknown := meanings_of(table.name).keys() - kinds.keys():
        raise KeyError(
            f"docs/data/columns.yaml explains {min(unknown)!r} of table {table.name!r}, which "
            "it does not have; remove it"
        )
    return rows


def shared_rows(tables: list[Table]) -> list[Row]:
    """Return the columns with one meaning in several tables, by name."""
    counts = Counter(row for table in tables for row in rows_of(table))
    shared = meanings_of("shared")
    return sorted(row for row, n in counts.items() if n > 1 and row[2] == shared.get(row[0]))


def lines_of(table: Table, shared: list[Row]) -> list[str]:
    """Return the section about a table: names of shared columns, then its own columns."""
    marks = dict.fromkeys(table.file_columns, "`{}`")
    for field in table.schema:
        name = "**`{}`**" if field.name in table.key else "`{}`"
        marks[field.name] = name + "?" * field.nullable
    rows = rows_of(table)
    parts = re.split(r"(, | or )", table.rule)
    rules = "".join(f"`{part}`" if i % 2 == 0 else part for i, part in enumerate(parts))
    names = {
        "Shared": [row[0] for row in rows if row in shared and row[0] in table.schema.names],
        "Metadata": table.file_columns,
    }
    lists = [
        f" {kind}: {', '.join(marks[name].format(name) for name in listed)}."
        for kind, listed in names.items()
        if listed
    ]
    own_rows = [(marks[row[0]].format(row[0]), *row[1:]) for row in rows if row not in shared]
    return [f"## `{table.name}`", "", f"From {rules}.{''.join(lists)}", "", *as_list(own_rows)]


def as_list(rows: list[Row]) -> list[str]:
    """Return a Markdown list of columns; columns with the same meaning share a line."""
    lines = []
    for meaning in dict.fromkeys(meaning for _, _, meaning in rows):
        names = dict.fromkeys(row[0] for row in rows if row[2] == meaning)
        kinds = dict.fromkeys(row[1] for row in rows if row[2] == meaning)
        lines.append(f"- {', '.join(names)} ({' or '.join(kinds)}): {meaning}")
    return [*lines, ""] if lines else []


def outputs_page() -> str:
    """Return the whole page of columns."""
    tables = all_tables()
    shared = shared_rows(tables)
    lines = [line for table in tables for line in lines_of(table, shared)]
    named = as_list([(f"`{row[0]}`", *row[1:]) for row in shared])
    return introduction(OUTPUTS_PAGE) + "\n".join(["## Shared columns", "", *named, *lines])


if __name__ == "__main__":
    CONFIG_PAGE.write_text(config_page(), encoding="utf-8")
    OUTPUTS_PAGE.write_text(outputs_page(), encoding="utf-8")
