"""Registrations of estimators: their display names, needs and config keys.

`persistcal.confidence.estimators.catalogue` has the project's. The Snakefile reads
registrations in users' files without running them, so the arguments of `estimator` are
literals.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

SEVERAL = "several_answers"

# vLLM does not give the first two, and a server none of the four.
DISTRIBUTIONS = ("entropy", "self_certainty")
OF_TOKENS = (*DISTRIBUTIONS, "margin", "min_logprob")
KNOWN_NEEDS = (SEVERAL, "logprob", "n_tokens", *OF_TOKENS, "unconditional", "stated")

# Keys of an estimator's entry in the config that only some functions read
KEYS = {
    "asks": "how many replies it asks a checkpoint for, and of what length and temperature",
    "prompt": "the file of what it asks a checkpoint about an answer",
    "verifier": "the verifier that rates the answers",
    "words": "what follows its prompt after a right answer and after a wrong one",
    "scale": "the probability of each expression that a reply may be",
    "layer": "the layer of the hidden states that it reads",
    "fit_at": "training, or each to fit the probe anew at each checkpoint",
    "rater": "the checkpoint whose probabilities of the answers it reads",
}
UNCHANGED_KEYS = ("words", "scale", "layer", "fit_at")  # that functions receive

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Registration:
    """Display name, needs and config keys of an estimator."""

    family: str = ""  # module in `estimators`, for functions of the project
    label: str = ""  # by default the name in the config
    needs: tuple[str, ...] = ()  # columns of BEAMS that must not be empty, and `SEVERAL`
    required: tuple[str, ...] = ()  # keys of `KEYS` that its entry in the config must have
    optional: tuple[str, ...] = ()  # and that it can have
    reads: tuple[str, ...] = ("evaluation",)  # default of the key, like the next four
    reads_weights: bool = False
    fitted: bool = False
    by_checkpoint: bool = False
    compares_answers: bool = False
    may_lack: bool = False  # whether confidences can be missing

    def __post_init__(self) -> None:
        """Refuse unknown needs and keys."""
        allowed = {"needs": KNOWN_NEEDS, "required": tuple(KEYS), "optional": tuple(KEYS)}
        for name, values in allowed.items():
            value = getattr(self, name)
            if not isinstance(value, tuple) or not set(value) <= set(values):
                raise ValueError(
                    f"{name} is {value!r}; give a tuple of {', '.join(map(repr, values))}"
                )

    @property
    def reads_answers_only(self) -> bool:
        """Whether the function needs at most the answers of the evaluated checkpoints."""
        more_needed = (self.required, self.reads_weights, self.fitted, self.compares_answers)
        return set(self.reads) <= {"evaluation"} and not any(more_needed) and not self.may_lack

    def for_jobs(self) -> dict[str, Any]:
        """Return the fields that a job of the estimator needs."""
        return {"family": self.family, "needs": self.needs, "may_lack": self.may_lack}

    def defaults(self) -> dict[str, Any]:
        """Return the defaults of keys in the config's entry."""
        flags = ("reads_weights", "fitted", "by_checkpoint", "compares_answers")
        set_flags = {name: True for name in flags if getattr(self, name)}
        return {"reads": list(self.reads), **set_flags}


def estimator(label: str = "", **settings: Any) -> Callable[[Function], Function]:  # noqa: ANN401
    """Register a user's function as an estimator, with fields of `Registration` as literals.

    >>> @estimator("Brevity", needs=("n_tokens",))
    ... def brevity(answers, evidence):
    ...     return 1 / (1 + evidence.beams["n_tokens"])
    """
    Registration(label=label, **settings)
    return lambda function: function


def registrations(source: str) -> dict[str, Registration]:
    """Return the registration of each estimator in a file's text; refuse a wrong one."""
    declared = {}
    for node in ast.parse(source).body:
        for call in getattr(node, "decorator_list", []):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("estimator"):
                declared[getattr(node, "name", "")] = _registration(call)
    return declared


def _registration(call: ast.Call) -> Registration:
    try:
        values = [ast.literal_eval(value) for value in call.args]
        keywords = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except ValueError:
        raise ValueError(
            f"@{ast.unparse(call)} has an argument that is no literal; write literals such as "
            "('logprob',)"
        ) from None
    try:
        return Registration("", *values, **keywords)
    except (TypeError, ValueError) as error:
        raise ValueError(f"@{ast.unparse(call)}: {error}") from error
