"""Answers of a checkpoint: beam search, answers of one meaning, the prediction.

Modules
-------
ask_server: ask a model behind an API for its answers, and keep its replies: nothing is asked
    twice
beam_search: the bookkeeping of beam search, for a batch of questions at once
clusters: group beams into candidate answers and give each its probability
decode: short answers by beam search or sampling, with the few-shot prefix encoded once
entailment: ask a natural-language-inference model whether one answer entails another
equivalence: which answers to a question mean the same, found with few comparisons
equivalence_backends: the equivalence of answers that a study's config asks for
few_shot: questions as a model is asked them, after a few examples: as text or in its chat
prefix_cache: attention over a shared prefix and a tree of tokens for each question
option_scoring: log-probabilities of options after their question, all options of a question
    in one tree
options: multiple choice: options as candidate answers, each a cluster of its own
predictions: the prediction of a checkpoint: its most probable candidate answer to a question
question_queue: answers to a queue of questions, some at a time: where some are done, others
    begin
sampling: samples of a model's answers, whose randomness has an address: question, sample and
    step
server_samples: samples of a model behind an API: what is asked for them, and what its replies
    say
token_trees: keys and values of each question's tokens, in a tree that its beams or samples
    share
"""
