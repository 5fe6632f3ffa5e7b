"""Answers of a checkpoint: beam search, groups of equal meaning, the prediction.

Modules
-------
clusters: group answers by meaning, and predict the most probable group
continuations: beam search and sampling, token by token, for a batch of questions at once
decode: answers by beam search or sampling, and scores of options, the prefix encoded once
entailment: whether one answer entails another, by a cached natural-language-inference model
equivalence: whether two answers have the same meaning, and their groups
halves: two halves of the samples of each question, as two asks
options: multiple-choice options as candidate answers
served: samples of a model behind an API, cached on disk
token_trees: decode a queue of questions, each with a tree of its beams' or samples' tokens
"""
