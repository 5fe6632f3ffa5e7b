"""The project's estimators: the family of each function, its display name, needs and keys.

The Snakefile imports this module, so it imports no package besides Snakemake's own. Functions
of users are registered in their own files, which are read without running them. No job imports
this module: another estimator must not make the others again.
"""

from pathlib import Path

from persistcal.confidence.registry import Registration, registrations

FAMILIES = Path(__file__).parent

ESTIMATORS = {
    "self_consistency": Registration("meaning", "Self-consistency", needs=("several_answers",)),
    "semantic_entropy": Registration("meaning", "Semantic entropy", needs=("several_answers",)),
    "semantic_sequence_entropy": Registration(
        "meaning", "Semantic entropy, Monte Carlo", needs=("logprob", "several_answers")
    ),
    "semantic_sets": Registration("meaning", "Number of meanings", needs=("several_answers",)),
    "degree_matrix": Registration("meaning", "Degree matrix", needs=("several_answers",)),
    "eccentricity": Registration("meaning", "Eccentricity", needs=("several_answers",)),
    "laplacian_eigenvalues": Registration(
        "meaning", "Laplacian eigenvalues", needs=("several_answers",)
    ),
    "lexical_similarity": Registration(
        "meaning", "Lexical similarity", needs=("several_answers",)
    ),
    "cocoa": Registration("meaning", "CoCoA", needs=("logprob", "several_answers")),
    "end_correct": Registration("meaning", "End-correct baseline"),
    "self_consistency_surrogate": Registration(
        "meaning",
        "Self-consistency, surrogate",
        needs=("several_answers",),
        reads=("last_earlier", "evaluation"),
        compares_answers=True,
    ),
    "self_consistency_copy": Registration(
        "meaning",
        "Self-consistency, copy",
        needs=("several_answers",),
        reads=("last_earlier", "evaluation"),
    ),
    "sequence_probability": Registration(
        "probabilities", "Sequence probability", needs=("logprob",)
    ),
    "perplexity": Registration("probabilities", "Perplexity", needs=("logprob", "n_tokens")),
    "mean_token_entropy": Registration(
        "probabilities", "Mean token entropy", needs=("logprob", "entropy")
    ),
    "min_token_probability": Registration(
        "probabilities", "Least token probability", needs=("logprob", "min_logprob")
    ),
    "self_certainty": Registration(
        "probabilities", "Self-certainty", needs=("logprob", "self_certainty")
    ),
    "probability_margin": Registration(
        "probabilities", "Probability margin", needs=("logprob", "margin")
    ),
    "sequence_entropy": Registration(
        "probabilities", "Sequence entropy", needs=("logprob", "several_answers")
    ),
    "option_probability": Registration("probabilities", "Option probability", reads=()),
    "option_margin": Registration("probabilities", "Option margin", needs=("several_answers",)),
    "option_entropy": Registration(
        "probabilities", "Option entropy", needs=("several_answers",)
    ),
    "linear_probe": Registration(
        "probes", "Linear probe", optional=("layer",), reads_weights=True, fitted=True
    ),
    "question_probe": Registration(
        "probes", "Question probe", optional=("layer",), reads_weights=True, fitted=True
    ),
    "entropy_probe": Registration(
        "probes",
        "Entropy probe",
        needs=("several_answers",),
        required=("fit_at",),
        optional=("layer",),
        reads_weights=True,
    ),
    "verbalised": Registration(
        "raters", "Verbalised", optional=("prompt",), reads_weights=True, by_checkpoint=True
    ),
    "p_true": Registration(
        "raters",
        "P(True)",
        required=("words",),
        optional=("prompt",),
        reads_weights=True,
        by_checkpoint=True,
    ),
    "p_true_few_shot": Registration(
        "raters",
        "P(True), few-shot",
        required=("words",),
        optional=("prompt",),
        reads_weights=True,
        fitted=True,
        by_checkpoint=True,
    ),
    "base_probability": Registration(
        "raters",
        "Earlier checkpoint as the rater",
        needs=("logprob", "n_tokens"),
        required=("rater",),
        reads_weights=True,
        by_checkpoint=True,
    ),
    "verifier": Registration("raters", "Verifier", required=("verifier",)),
    "stated": Registration("replies", "Stated", may_lack=True),
    "said_probability": Registration(
        "replies", "Said probability", required=("asks", "prompt"), may_lack=True
    ),
    "said_guesses": Registration(
        "replies", "Said probability, top 4", required=("asks", "prompt"), may_lack=True
    ),
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
