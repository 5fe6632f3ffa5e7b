"""The demo's world: facts, a corpus of texts about them, and a small pre-training.

Modules
-------
cities: facts about cities and countries, and questions about them
corpus: the documents of a small pre-training, in a mixture that drifts
elements: facts about chemical elements, and questions about them
facts: facts as questions and as texts for pre-training
pretraining: pre-train a small Olmo-3 model in segments, one checkpoint after another
"""
