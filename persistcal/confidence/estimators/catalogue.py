"""The project's estimators: the family of each function, its display name, needs and keys.

The Snakefile imports this module, so it imports no package besides Snakemake's own. Functions
of users are registered in their own files, which are read without running them. No job imports
this module: another estimator must not make the others again.
"""

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

ESTIMATORS = {
    "self_consistency": Registration("meaning", "Self-consistency", SEVERAL),
    "semantic_entropy": Registration("meaning", "Semantic entropy", SEVERAL),
    "semantic_sequence_entropy": Registration("meaning", "Semantic entropy, Monte Carlo", BOTH),
    "semantic_sets": Registration("meaning", "Number of meanings", SEVERAL),
    "degree_matrix": Registration("meaning", "Degree matrix", SEVERAL),
    "eccentricity": Registration("meaning", "Eccentricity", SEVERAL),
    "laplacian_eigenvalues": Registration("meaning", "Laplacian eigenvalues", SEVERAL),
    "lexical_similarity": Registration("meaning", "Lexical similarity", SEVERAL),
    "cocoa": Registration("meaning", "CoCoA", BOTH),
    "end_correct": Registration("meaning", "End-correct baseline"),
    "self_consistency_surrogate": Registration(
        *("meaning", "Self-consistency, surrogate", SEVERAL),
        reads=FROM_LAST,
        compares_answers=True,
    ),
    "self_consistency_copy": Registration(
        "meaning", "Self-consistency, copy", SEVERAL, reads=FROM_LAST
    ),
    "sequence_probability": Registration("probabilities", "Sequence probability", LOGPROB),
    "perplexity": Registration("probabilities", "Perplexity", ("logprob", "n_tokens")),
    "mean_token_entropy": Registration(
        "probabilities", "Mean token entropy", ("logprob", "entropy")
    ),
    "min_token_probability": Registration(
        "probabilities", "Least token probability", ("logprob", "min_logprob")
    ),
    "self_certainty": Registration(
        "probabilities", "Self-certainty", ("logprob", "self_certainty")
    ),
    "probability_margin": Registration(
        "probabilities", "Probability margin", ("logprob", "margin")
    ),
    "sequence_entropy": Registration("probabilities", "Sequence entropy", BOTH),
    "option_probability": Registration("probabilities", "Option probability", reads=()),
    "option_margin": Registration("probabilities", "Option margin", SEVERAL),
    "option_entropy": Registration("probabilities", "Option entropy", SEVERAL),
    "linear_probe": Registration("probes", "Linear probe", fitted=True, **PROBE),
    "question_probe": Registration("probes", "Question probe", fitted=True, **PROBE),
    "entropy_probe": Registration(
        "probes", "Entropy probe", SEVERAL, required=("fit_at",), **PROBE
    ),
    "verbalised": Registration("raters", "Verbalised", **RATER),
    "p_true": Registration("raters", "P(True)", required=("words",), **RATER),
    "p_true_few_shot": Registration(
        "raters", "P(True), few-shot", required=("words",), fitted=True, **RATER
    ),
    "base_probability": Registration(
        *("raters", "Earlier checkpoint as the rater", ("logprob", "n_tokens")),
        required=("rater",),
        reads_weights=True,
        by_checkpoint=True,
    ),
    "verifier": Registration("raters", "Verifier", required=("verifier",)),
    "stated": Registration("replies", "Stated", may_lack=True),
    "said_probability": Registration("replies", "Said probability", **SAID),
    "said_guesses": Registration("replies", "Said probability, top 4", **SAID),
    "said_words": Registration(
        "replies", "Said expression", required=("asks", "prompt", "scale"), may_lack=True
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
