"""The equivalence of answers that a study's config asks for.

A module of its own: what compares texts alone must not depend on the code that loads models,
whose every edit would rerun it.
"""

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
    """Give the equivalence that the config's section describes, within a ``with`` block.

    `model_path` is the record of the entailment model, beside which its answers about `dataset`
    are kept; `questions` and `answers` are all that may be compared. "lexical" reads neither.
    """
    if settings["backend"] == "lexical":
        yield identical
        return
    # Torch and the Hub are not needed above.
    import torch

    from persistcal.answers.entailment import HYPOTHESIS, PREMISE, EntailmentModel
    from persistcal.models.checkpoint import Checkpoint
    from persistcal.models.hub import fetch_checked
    from persistcal.store.entailment_cache import EntailmentCache, folder_of

    torch.set_num_threads(threads)
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
