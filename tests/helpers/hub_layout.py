"""Write small datasets in the file layout and with the columns of those on the Hub."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

TEXT, TEXTS = pa.string(), pa.list_(pa.string())
ANSWER = {
    **{"aliases": TEXTS, "matched_wiki_entity_name": TEXT, "normalized_aliases": TEXTS},
    **{"normalized_matched_wiki_entity_name": TEXT, "normalized_value": TEXT, "type": TEXT},
    "value": TEXT,
}
TRIVIAQA = pa.schema(
    [(name, TEXT) for name in ("question", "question_id", "question_source")]
    + [("answer", pa.struct(ANSWER))]
)
JEOPARDY = pa.schema(
    [(name, TEXT) for name in ("category", "air_date", "question", "value", "answer", "round")]
    + [(name, TEXT) for name in ("show_number", "context", "ee-question", "ee-continuation")]
    + [(name, TEXT) for name in ("ee-category", "continuation", "id", "og-category")]
    + [("mosaicml_gauntlet", pa.bool_())]
)


def _write(folder: Path, name: str, splits: dict[str, list[dict]], schema: pa.Schema) -> dict:
    """Write the splits of a configuration; return its entry in the card."""
    root = name if name == "rc.nocontext" else f"data/{name}"
    (folder / root).mkdir(parents=True, exist_ok=True)
    for split, rows in splits.items():
        path = folder / root / f"{split}-00000-of-00001.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    files = [{"split": split, "path": f"{root}/{split}-*"} for split in splits]
    return {"config_name": name, "data_files": files}


def _write_card(folder: Path, *configs: dict) -> str:
    text = yaml.safe_dump({"configs": list(configs)}, sort_keys=False)
    (folder / "README.md").write_text(f"---\n{text}---\n")
    return str(folder)


def write_triviaqa(folder: Path, **splits: list[tuple[str, ...]]) -> str:
    """Write splits of (question, answer, further aliases…) like `mandarjoshi/trivia_qa`."""
    rows = {
        split: [
            {
                "question": question,
                "question_id": f"tc_{row}",
                "question_source": "http://www.triviacountry.com/",
                "answer": {
                    "value": answer,
                    "aliases": [answer, f"{answer}!", *aliases],
                    "normalized_aliases": [answer.strip().lower()],
                    "type": "Other",
                },
            }
            for row, (question, answer, *aliases) in enumerate(pairs)
        ]
        for split, pairs in splits.items()
    }
    return _write_card(folder, _write(folder, "rc.nocontext", rows, TRIVIAQA))


def write_jeopardy(folder: Path, clues: list[tuple[str, str, str]]) -> str:
    """Write (category, clue, answer) like `soldni/jeopardy`."""
    rows = [
        {
            **{"category": f"og {category}", "question": clue, "answer": f"not {answer}"},
            **{"ee-category": category, "continuation": answer, "mosaicml_gauntlet": False},
        }
        for category, clue, answer in clues
    ]
    all_questions = _write(folder, "all_questions", {"train": rows}, JEOPARDY)
    return _write_card(
        folder,
        all_questions,
        _write(folder, "mosaicml_gauntlet", {"train": rows[:1]}, JEOPARDY),
    )
