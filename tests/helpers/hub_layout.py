"""Write small datasets in the file layout and with the columns of those on the Hub."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TEXT, TEXTS = pa.string(), pa.list_(pa.string())
TRIVIAQA = pa.schema(
    {
        "question": TEXT,
        "question_id": TEXT,
        "question_source": TEXT,
        "answer": pa.struct(
            {
                "aliases": TEXTS,
                "matched_wiki_entity_name": TEXT,
                "normalized_aliases": TEXTS,
                "normalized_matched_wiki_entity_name": TEXT,
                "normalized_value": TEXT,
                "type": TEXT,
                "value": TEXT,
            }
        ),
    }
)
JEOPARDY = pa.schema(
    [(name, TEXT) for name in ("category", "air_date", "question", "value", "answer", "round")]
    + [(name, TEXT) for name in ("show_number", "context", "ee-question", "ee-continuation")]
    + [(name, TEXT) for name in ("ee-category", "continuation", "id", "og-category")]
    + [("mosaicml_gauntlet", pa.bool_())]
)


def _write(folder: Path, path: str, rows: list[dict], schema: pa.Schema) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / path)


def write_triviaqa(folder: Path, **splits: list[tuple[str, str]]) -> str:
    """Write splits of (question, answer) like `mandarjoshi/trivia_qa`."""
    lines = ["---", "configs:", "- config_name: rc.nocontext", "  data_files:"]
    for split, pairs in splits.items():
        lines += [f"  - split: {split}", f"    path: rc.nocontext/{split}-*"]
        rows = [
            {
                "question": question,
                "question_id": f"tc_{row}",
                "question_source": "http://www.triviacountry.com/",
                "answer": {"value": answer, "aliases": [answer, f"{answer}!"], "type": "Other"},
            }
            for row, (question, answer) in enumerate(pairs)
        ]
        _write(folder, f"rc.nocontext/{split}-00000-of-00001.parquet", rows, TRIVIAQA)
    (folder / "README.md").write_text("\n".join([*lines, "---", ""]))
    return str(folder)


def write_jeopardy(folder: Path, clues: list[tuple[str, str, str]]) -> str:
    """Write (category, clue, answer) like `soldni/jeopardy`."""
    rows = [
        {
            "category": f"og {category}",
            "question": clue,
            "answer": f"not {answer}",
            "ee-category": category,
            "continuation": answer,
            "mosaicml_gauntlet": False,
        }
        for category, clue, answer in clues
    ]
    _write(folder, "data/all_questions/train-00000-of-00001.parquet", rows, JEOPARDY)
    _write(folder, "data/mosaicml_gauntlet/train-00000-of-00001.parquet", rows[:1], JEOPARDY)
    configs = [
        line
        for name in ("all_questions", "mosaicml_gauntlet")
        for line in (
            f"- config_name: {name}",
            "  data_files:",
            "  - split: train",
            f"    path: data/{name}/train-*",
        )
    ]
    (folder / "README.md").write_text("\n".join(["---", "configs:", *configs, "---", ""]))
    return str(folder)
