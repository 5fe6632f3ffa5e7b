"""The project's estimators: the family of each function, its display name, needs and keys.

The Snakefile imports this module, so it imports no package besides Snakemake's own. Functions
of users are registered in their own files, which are read without running them. No job imports
this module: another estimator must not make the others again.
"""

from functools import partial
from pathlib import Path
from typing import Any

from persistcal.confidence.registry import Registration, registrations

FAMILIES = Path(__file__).parent

SEVERAL, LOGPROB = ("several_answers",), ("logprob",)
BOTH = ("logprob", "several_answers")
FROM_LAST = ("last_earlier", "evaluation")
PROBE: dict[str, Any] = {"optional": ("layer",), "reads_weights": True}
RATER: dict[str, Any] = {"optional": ("prompt",), "reads_weights": True, "by_checkpoint": True}
SAID: dict[str, Any] = {"required": ("asks", "prompt"), "may_lack": True}

MEANING, PROBABILITIES, PROBES, RATERS, REPLIES = (
    partial(Registration, family)
    for family in ("meaning", "probabilities", "probes", "raters", "replies")
)
ESTIMATORS = {
    "self_consistency": MEANING("Self-consistency", SEVERAL),
    "semantic_entropy": MEANING("Semantic entropy", SEVERAL),
    "semantic_sequence_entropy": MEANING("Semantic entropy, Monte Carlo", BOTH),
    "semantic_sets": MEANING("Number of meanings", SEVERAL),
    "degree_matrix": MEANING("Degree matrix", SEVERAL),
    "eccentricity": MEANING("Eccentricity", SEVERAL),
    "laplacian_eigenvalues": MEANING("Laplacian eigenvalues", SEVERAL),
    "lexical_similarity": MEANING("Lexical similarity", SEVERAL),
    "cocoa": MEANING("CoCoA", BOTH),
    "end_correct": MEANING("End-correct baseline"),
    "self_consistency_surrogate": MEANING(
        "Self-consistency, surrogate", SEVERAL, reads=FROM_LAST, compares_answers=True
    ),
    "self_consistency_copy": MEANING("Self-consistency, copy", SEVERAL, reads=FROM_LAST),
    "sequence_probability": PROBABILITIES("Sequence probability", LOGPROB),
    "perplexity": PROBABILITIES("Perplexity", ("logprob", "n_tokens")),
    "mean_token_entropy": PROBABILITIES("Mean token entropy", ("logprob", "entropy")),
    "min_token_probability": PROBABILITIES(
        "Least token probability", ("logprob", "min_logprob")
    ),
    "self_certainty": PROBABILITIES("Self-certainty", ("logprob", "self_certainty")),
    "probability_margin": PROBABILITIES("Probability margin", ("logprob", "margin")),
    "sequence_entropy": PROBABILITIES("Sequence entropy", BOTH),
    "option_probability": PROBABILITIES("Option probability", reads=()),
    "option_margin": PROBABILITIES("Option margin", SEVERAL),
    "option_entropy": PROBABILITIES("Option entropy", SEVERAL),
    "linear_probe": PROBES("Linear probe", fitted=True, **PROBE),
    "question_probe": PROBES("Question probe", fitted=True, **PROBE),
    "entropy_probe": PROBES("Entropy probe", SEVERAL, required=("fit_at",), **PROBE),
    "verbalised": RATERS("Verbalised", **RATER),
    "p_true": RATERS("P(True)", required=("words",), **RATER),
    "p_true_few_shot": RATERS("P(True), few-shot", required=("words",), fitted=True, **RATER),
    "base_probability": RATERS(
        *("Earlier checkpoint as the rater", ("logprob", "n_tokens")),
        **{**RATER, "required": ("rater",), "optional": ()},
    ),
    "verifier": RATERS("Verifier", required=("verifier",)),
    "stated": REPLIES("Stated", may_lack=True),
    "said_probability": REPLIES("Said probability", **SAID),
    "said_guesses": REPLIES("Said probability, top 4", **SAID),
    "said_words": REPLIES(
        "Said expression", required=("asks", "prompt", "scale"), may_lack=True
    ),
}
# Display names of the estimators that need only the answers of the evaluated checkpoints
OF_ANSWERS = {
    name: registration.label
    for name, registration in ESTIMATORS.items()
    if registration.reads_answers_only
}


def file_of(function: str) -> Path:
    """Return the file of an estimator's function, the project's or a user's."""
    if function.endswith(".py"):
        return Path(function)
    return FAMILIES / f"{ESTIMATORS[function].family}.py"


def registration_of(function: str) -> Registration:
    """Return the registration of an estimator's function, the project's or a user's.

    A function without the decorator, or in a file that does not exist, has the default.
    """
    if not function.endswith(".py"):
        return ESTIMATORS[function]
    path = Path(function)
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return registrations(text).get(path.stem, Registration())
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"{path}: {error}") from error
