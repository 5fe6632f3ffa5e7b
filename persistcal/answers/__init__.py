"""Answers of a checkpoint: beam search, groups of equal meaning, the prediction.

Modules
-------
clusters: group answers by meaning; predictions, their labels and confidences
continuations: beam search and sampling, token by token, for a batch of questions at once
decode: answers by beam search or sampling, and scores of options, the prefix encoded once
entailment: whether one answer entails another, by a cached natural-language-inference model
equivalence: whether two answers have the same meaning, and their groups
halves: two halves of the samples of each question, as two asks
options: multiple-choice options as candidate answers
queue: answer a queue of questions, many at once; steps are CUDA graphs on a GPU
served: samples of a model behind an API, cached on disk
slots: trees of tokens, one for each question, and attention to them
"""
