"""Columns and weights that an estimator needs, by the names in its file.

Estimators define ``NEEDS = ("logprob",)``: columns of BEAMS that can be empty, and `SEVERAL`.
The Snakefile reads them when it is parsed, so this module needs no other package.
"""

import ast

SEVERAL = "several_answers"

# vLLM does not give the first two, and a server none of the four.
DISTRIBUTIONS = ("entropy", "self_certainty")
OF_TOKENS = (*DISTRIBUTIONS, "margin", "min_logprob")
KNOWN = (SEVERAL, "logprob", "n_tokens", *OF_TOKENS, "unconditional", "stated")


def declared_needs(source: str) -> tuple[str, ...]:
    """Return the needs that an estimator's `source` declares; refuse unknown ones."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NEEDS":
            try:
                needs = ast.literal_eval(node.value)
            except ValueError:
                needs = None
            if not isinstance(needs, tuple) or not set(needs) <= set(KNOWN):
                raise ValueError(
                    f"NEEDS is {ast.unparse(node.value)}, but it may be a tuple of "
                    f"{', '.join(map(repr, KNOWN))}"
                )
            return needs
    return ()
