"""Facts about each source of questions, by the value of the config's `datasets.*.source`.

The Snakefile imports this module, so it imports no other package. The module `sources` contains
the functions of the sources, and the package `atlas` the functions of the demo.
"""

from typing import NamedTuple


class QuestionSource(NamedTuple):
    """The facts about a source that a study needs before it reads the questions."""

    needs: tuple[str, ...]  # required keys of a dataset
    # Number of questions; None if splits are drawn, with the dataset's n_few_shot for prompts
    kept_for_prompts: int | None = None
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
    "file": QuestionSource(("file",)),  # its column split can mark questions for prompts
}
