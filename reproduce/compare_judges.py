"""Show how judges differ: `python -m reproduce.compare_judges CONFIG CONFIG ...`.

Each config is a file of keys over the defaults, such as ``judge`` and ``prompts``. The judge of
a config labels the 60 answers of config/judge_examples.csv, which a person labelled by the
rules of the default prompt. Replies are kept in `--folder`. A file with the same columns can
replace the examples.
"""

import argparse
import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from snakemake.common.configfile import load_configfile

from persistcal.judge.backends import BACKENDS
from study.config_files import over_defaults
from study.inputs import Inputs
from study.schema import check_schema
from study.study import Study

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "config" / "judge_examples.csv"
SEVERAL = " | "  # between references


class Example(NamedTuple):
    """An answer that a person has labelled, and the rule that decides it."""

    rule: str
    question: str
    references: tuple[str, ...]
    answer: str
    label: str


def read_examples(path: Path) -> list[Example]:
    """Return the labelled answers of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Example(
                row["rule"],
                row["question"],
                tuple(row["references"].split(SEVERAL)),
                row["answer"],
                row["label"],
            )
            for row in csv.DictReader(file)
        ]


def labels_by(config_file: Path, examples: Sequence[Example], folder: Path) -> list[str]:
    """Return the labels by the judge of a config, ``?`` for answers that wait for a person."""
    config = over_defaults(load_configfile(config_file), ROOT)
    config["judge"]["undecided"] = "not_attempted"
    check_schema(config)
    inputs = Inputs(Study(config), ROOT)
    settings = {**inputs.judge_settings(), **inputs.label_settings()}
    judge_folder = folder / config_file.stem
    judge_folder.mkdir(parents=True, exist_ok=True)
    backend = BACKENDS[settings["backend"]](
        settings, str(judge_folder), str(judge_folder / "noted.csv")
    )
    rows = [(example.question, example.references, example.answer) for example in examples]
    return ["?" if source == "queue" else label for label, source in backend.label(rows)]


def as_markdown(examples: Sequence[Example], labels: dict[str, list[str]]) -> str:
    """Return the agreement with the person's labels by rule, and the answers that differ."""
    lines = [f"| rule | answers | {' | '.join(labels)} |", f"|---|{'--:|' * (1 + len(labels))}"]
    rules = [example.rule for example in examples]
    for rule in [*dict.fromkeys(rules), "all"]:
        rows = [i for i, name in enumerate(rules) if rule in (name, "all")]
        agreed = [sum(words[i] == examples[i].label for i in rows) for words in labels.values()]
        lines.append(f"| {rule} | {len(rows)} | {' | '.join(map(str, agreed))} |")
    lines += ["", f"| question | references | answer | person | {' | '.join(labels)} |"]
    lines.append(f"|{'---|' * (4 + len(labels))}")
    for i, example in enumerate(examples):
        words = [of_judge[i] for of_judge in labels.values()]
        if {*words} != {example.label}:
            cells = [example.question, "; ".join(example.references), example.answer]
            lines.append(f"| {' | '.join([*cells, example.label, *words])} |")
    return "\n".join(lines)


def main() -> None:
    """Label the examples with each config's judge, and print how they differ."""
    parser = argparse.ArgumentParser(prog="python -m reproduce.compare_judges")
    parser.add_argument("configs", nargs="+", type=Path)
    parser.add_argument("--examples", type=Path, default=EXAMPLES)
    parser.add_argument("--folder", type=Path, default=Path("results/judges"))
    args = parser.parse_args()
    names = [path.stem for path in args.configs]
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        parser.error(f"two configs are named {twice[0]}; rename one")
    examples = read_examples(args.examples)
    labels = {path.stem: labels_by(path, examples, args.folder) for path in args.configs}
    print(as_markdown(examples, labels))


if __name__ == "__main__":
    main()
