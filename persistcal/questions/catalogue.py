"""Facts about each source of questions, by the value of the config's `datasets.*.source`.

The Snakefile imports this module, so it imports no other package. The functions of the sources
are in `sources`, and those of the demo in the package `atlas`.
"""

from typing import NamedTuple


class QuestionSource(NamedTuple):
    """What a study must know of a source before it reads it."""

    needs: tuple[str, ...]  # required keys of a dataset
    kept_for_prompts: int | None = None  # questions, unless the key n_few_shot has the number
    file_is_optional: bool = False  # whether a missing file is explained only when it is read
    examples_by_category: bool = False  # whether few-shot examples have the question's category


SOURCES = {
    "atlas": QuestionSource(("n_train", "n_test", "n_few_shot", "seed", "min_city_population")),
    "elements": QuestionSource(("n_test", "n_few_shot", "seed", "train_datasets")),
    "triviaqa": QuestionSource(("repo", "revision", "train", "test"), kept_for_prompts=10),
    "jeopardy": QuestionSource(
        ("repo", "revision", "train", "test", "categories"), kept_for_prompts=10
    ),
    "bioasq": QuestionSource(
        ("file", "train_datasets"),
        kept_for_prompts=5,
        file_is_optional=True,
        examples_by_category=True,
    ),
    "file": QuestionSource(("file",)),  # which can mark its questions for prompts
}
