"""What a checkpoint answers: beam search, which answers mean the same, the prediction.

Modules
-------
beam_search: the bookkeeping of beam search, for a batch of questions at once
clusters: group beams into candidate answers and give each its probability
decode: short answers by beam search or sampling, with the few-shot prefix encoded once
entailment: ask a natural-language-inference model whether one answer entails another
entailment_cache: what an entailment model said, on disk, shared by all jobs
equivalence: which answers to a question mean the same, found with few comparisons
equivalence_backends: the equivalence of answers that a study's config asks for
noise: random numbers with an address, the same on any device
predictions: the prediction of a checkpoint: its most probable candidate answer to a
    question
sampling: samples of a model's answers, whose randomness has an address: question, sample and
    step
token_trees: attention over a shared prefix and a tree of tokens for each question
"""
