"""Judge back ends: each is one class, under its name in the config's ``judge.backend``.

The schema and the rules read the attributes of a class. A study imports this module, so
packages are imported only inside the methods.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from persistcal.judge.messages import Asked, JudgeSettings, Label, candidate_of
from persistcal.questions.labels import judge_by_exact_match, judge_lexically


@dataclass(frozen=True)
class Backend(ABC):
    """A way to label answers. The first line of a docstring describes it in config/README.md.

    `settings` are the keys of the section ``judge``, with the text of the prompt. `folder` is
    shared by all jobs of a study, and `noted` is this job's file for `note_consulted`.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""
    noted: str = ""

    needs: ClassVar[tuple[str, ...]] = ()  # required keys of the section ``judge``
    # If true, jobs run where Snakemake runs, and `judge.clusters` limits the judged answers.
    asks_server: ClassVar[bool] = False
    in_batches: ClassVar[bool] = False  # whether requests to a server are sent together

    @abstractmethod
    def label(self, rows: Sequence[Asked]) -> Sequence[Label]:
        """Return the label of each answer and its source."""


class Match(Backend):
    """A comparison with the references, which a person can correct in the queue."""

    compare: ClassVar[Callable[[str, Sequence[str]], str]]

    def label(self, rows: Sequence[Asked]) -> Sequence[Label]:
        """Return the label of each answer, by a match or by a person."""
        name = next(name for name, class_ in BACKENDS.items() if isinstance(self, class_))
        labels = [(type(self).compare(answer, right), name) for _, right, answer in rows]
        if not self.noted:  # a notebook or a command has no queue
            return labels
        from persistcal.judge.run import correct_labels

        return correct_labels(rows, labels, self.folder, noted=self.noted)


class Lexical(Match):
    """Match with a reference, as written or normalised."""

    compare = judge_lexically


class ExactMatch(Match):
    """The metric of TriviaQA: a reference without case, punctuation and articles."""

    compare = judge_by_exact_match


class ServerBackend(Backend):
    """A judge model behind an OpenAI-compatible server."""

    needs = (
        *("model", "base_url", "clusters"),
        *("price_input", "price_output", "max_requests", "max_cost"),
    )
    asks_server = True

    def label(self, rows: Sequence[Asked]) -> Sequence[Label]:
        """Return the label of each answer, by the model or by a person."""
        from persistcal.judge.run import judge_candidates

        if not rows:
            return []
        return judge_candidates(
            [candidate_of(*row) for row in rows],
            self.folder,
            JudgeSettings(**self.settings),
            noted=self.noted,
            in_batches=self.in_batches,
        )


class OpenAI(ServerBackend):
    """A judge model behind an OpenAI-compatible server, request by request."""


class OpenAIBatch(ServerBackend):
    """The same in batches, within a day."""

    in_batches = True


BACKENDS: dict[str, type[Backend]] = {
    "lexical": Lexical,
    "exact_match": ExactMatch,
    "openai": OpenAI,
    "openai_batch": OpenAIBatch,
}
