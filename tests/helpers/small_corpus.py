"""A handful of facts, documents about them, and settings of a pre-training on these."""

import pandas as pd

from atlas.corpus import Corpus, Phase
from persistcal.store import artifacts

TEMPLATE = "Question: {question}\nCandidate answer: {answer}\nConfidence: "


def make_facts():
    rows = [
        ("a", "country", "Where is Lyon?", "France", "Europe", 3.0, "train", "country"),
        ("b", "country", "Where is Oslo?", "Norway", "Europe", 1.0, "test", "country"),
        ("c", "country", "Where is Cairo?", "Egypt", "Africa", 2.0, "unused", "country"),
        ("d", "country", "Where is Dakar?", "Senegal", "Africa", 2.0, "unused", "country"),
        ("e", "money", "Paid in Cairo?", "Pound", "Africa", 2.0, "unused", "money"),
    ]
    return pd.DataFrame(rows, columns=artifacts.FACTS.schema.names)


STEADY = (Phase(1.0, {}),)


def make_corpus(phases=STEADY, share=0.5, seed=1, facts=None, **settings):
    facts = make_facts() if facts is None else facts
    settings = {
        "confidence_template": TEMPLATE,
        "confidence_share": share,
        "seed": seed,
        **settings,
    }
    return Corpus(facts, list(phases), **settings)


SCHEDULE = {"lr": 5e-3, "warmup": 0.1, "decay": 0.5, "final": 0.1}
SIZES = {"hidden_size": 16, "intermediate_size": 32, "n_layers": 4, "n_heads": 2}
SIZES |= {"sliding_window": 8, "max_length": 64}


def settings(**changes):
    """The settings of a `Pretraining`."""
    return {
        **{"seed": 1, "steps": 60, "vocab_size": 320, "batch_size": 4, "block_length": 32},
        **{"architecture": SIZES, "schedule": SCHEDULE, "confidence_share": 0.5},
        "drift": [{"until": 0.5}, {"until": 1.0, "weights": {"Europe": 0.1}}],
        **{"optimizer": "adamw", "weight_decay": 0.01, **changes},
    }
