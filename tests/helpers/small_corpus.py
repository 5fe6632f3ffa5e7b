"""A handful of facts, and documents about them."""

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


def make_corpus(phases=STEADY, share=0.5, seed=1, facts=None, **how):
    facts = make_facts() if facts is None else facts
    how = {"confidence_template": TEMPLATE, "confidence_share": share, "seed": seed, **how}
    return Corpus(facts, list(phases), **how)
