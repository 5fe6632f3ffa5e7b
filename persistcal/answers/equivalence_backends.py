"""The equivalence of answers that a study's config asks for."""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from persistcal.answers.equivalence import PairTest, identical, mutual_entailment

# What an entailment model needs beside its weights.
MODEL_FILES = ["*.json", "*.txt", "*.model"]


@contextlib.contextmanager
def open_equivalence(
    settings: Mapping[str, Any],
    model_path: str,
    dataset: str,
    *,
    questions: Iterable[str],
    answers: Iterable[str],
    threads: int,
) -> Iterator[PairTest]:
    """Give the equivalence that `settings` describe, as long as the ``with`` block lasts.

    Parameters
    ----------
    settings : mapping
        The config's section equivalence.
    model_path : str
        Record of the entailment model by `fetch_entailment_model`, beside which
        its answers are kept; not read by the backend "lexical".
    dataset : str
        Answers about a dataset are kept together, so that others need not read them.
    questions, answers : iterable of str
        All that may be compared.
    threads : int
        How many the entailment model may use.
    """
    if settings["backend"] == "lexical":
        yield identical
        return
    # Torch and the Hub are not needed above.
    from persistcal.answers.entailment import HYPOTHESIS, PREMISE, EntailmentModel
    from persistcal.models.checkpoint import Checkpoint
    from persistcal.models.hub import fetch_checked
    from persistcal.models.load import set_threads
    from persistcal.store.entailment_cache import EntailmentCache, folder_of

    set_threads(threads)
    model = Checkpoint.read(model_path)
    folder = fetch_checked(model)
    dtype = settings.get("dtype", "float32")
    asked = [model.weights, PREMISE, HYPOTHESIS, dtype]
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
    cache = EntailmentCache(
        folder_of(model_path, digest, dataset),
        EntailmentModel(str(folder), batch_size=settings["batch_size"], dtype=dtype),
        questions=questions,
        answers=answers,
    )
    with cache as entails:
        yield mutual_entailment(entails)
