"""Facts about each source of questions, by the value of the config's `datasets.*.source`.

The Snakefile imports this module, so it imports no other package. The module `sources` contains
the functions of the sources, and the package `atlas` the functions of the demo.
"""

from typing import NamedTuple

SHARED_KEYS = ("label", "source", "min_contrast", "train_datasets")  # keys of every dataset


class QuestionSource(NamedTuple):
    """The facts about a source that a study needs before it reads the questions."""

    needs: tuple[str, ...]  # required keys of a dataset
    optional: tuple[str, ...] = ()  # further keys that it reads; others are refused
    # Number of questions; None if the dataset's n_few_shot are drawn
    kept_for_prompts: int | None = None
    file_is_optional: bool = False  # whether a missing file is explained only when it is read
    examples_by_category: bool = False  # whether few-shot examples have the question's category


SOURCES = {
    "atlas": QuestionSource(
        ("n_train", "n_test", "n_few_shot", "seed", "min_city_population"), ("groups", "edits")
    ),
    "elements": QuestionSource(("n_test", "n_few_shot", "seed", "train_datasets")),
    "triviaqa": QuestionSource(
        ("repo", "revision", "train", "test"), ("aliases", "expect"), kept_for_prompts=10
    ),
    "jeopardy": QuestionSource(
        ("repo", "revision", "train", "test", "categories"), ("expect",), kept_for_prompts=10
    ),
    "bioasq": QuestionSource(
        ("file", "train_datasets"),
        ("test", "expect"),  # only the authors' release reads `test`
        kept_for_prompts=5,
        file_is_optional=True,
        examples_by_category=True,
    ),
    # The file's column split can mark questions for prompts
    "file": QuestionSource(("file",), ("n_few_shot", "n_train", "n_test", "seed")),
}
