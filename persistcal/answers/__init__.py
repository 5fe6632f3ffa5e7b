"""Answers of a checkpoint: beam search, groups of equal meaning, the prediction.

Modules
-------
beam_search: the bookkeeping of beam search, for a batch of questions at once
clusters: group answers by meaning, and predict the most probable group
decode: short answers by beam search or sampling, with the few-shot prefix encoded once
entailment: whether one answer entails another, by a cached natural-language-inference model
option_scoring: log-probabilities of options, all options of a question in one tree
options: multiple-choice options as candidate answers
question_queue: decode a queue of questions: finished ones make room for others
sampling: samples with random numbers that depend on question, sample and step only
served: samples of a model behind an API, cached on disk
token_trees: keys and values of each question's tokens, in a tree of beams or samples
"""
