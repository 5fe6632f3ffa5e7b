"""Put a user's passages before the questions of a dataset, for a state with a context."""

from persistcal.questions.question_list import KNOWN, with_passages
from persistcal.store.artifacts import Contexts, Questions
from persistcal.store.jobs import run
from persistcal.store.user_files import digests_of, name_files_in_errors, read_file


def read_context(
    questions: Questions, file: str, *, prompt: str, splits: list[str]
) -> Contexts:
    """Return the questions as the state is asked them."""
    with name_files_in_errors(file):
        rows = read_file(file, known_names=KNOWN)
        asked = with_passages(questions, rows, prompt=prompt, splits=splits)
    asked.attrs["sources"] = digests_of(file)
    return asked


if __name__ == "__main__":
    run(read_context, snakemake)
