"""Estimators that need no adapter, one function per file.

Each is given `answers`, the predictions to rate (columns checkpoint, question_id,
question, answer, probability), and the `Evidence` that the study has, and returns
one confidence in [0, 1] for each row. What it needs of the answers stands beside it as
NEEDS, see `persistcal.confidence.evidence`.

Modules
-------
base_probability: of an answer: its probability at another checkpoint, the rater
cocoa: of an answer: its probability, and how many other answers agree with it
degree_matrix: in a question: how similar two of the answers are
eccentricity: in a question: how far the answers lie from their centre
end_correct: that knows only how late a checkpoint is
entropy_probe: a linear probe on hidden states that predicts semantic entropy
laplacian_eigenvalues: in a question: a continuous number of meanings among the answers
lexical_similarity: in a question: how much of two answers is the same words in the same order
linear_probe: a linear probe on hidden states, trained on the earlier checkpoints
mean_token_entropy: of an answer: how sure the model was of each of its tokens
min_token_probability: of an answer: the probability of its least probable token
option_entropy: in a question: how far the options' probabilities are from equal ones
option_margin: of an option: by how much its probability exceeds that of the next one
option_probability: of an option: its share of the options' probability
p_true: of an answer: the probability with which the checkpoint calls it true
p_true_few_shot: of an answer: the probability that it is called true, after judged examples
perplexity: of an answer: the geometric mean of its tokens' probabilities
probability_margin: of an answer: by how much the likeliest token exceeds the next one
question_probe: a linear probe on the hidden state of the question
said_guesses: of an answer: the probability that the checkpoint states among several guesses
said_probability: of an answer: the probability that the checkpoint states in words
said_words: of an answer: the probability of the expression that the checkpoint chooses
self_certainty: of an answer: how far the distributions of its tokens are from uniform
self_consistency: of an answer: the share of the beams' probability that means the same
self_consistency_copy: of an answer: the last earlier checkpoint's in its own, whatever it is
self_consistency_surrogate: in a checkpoint's answers, taken from the last earlier checkpoint
semantic_entropy: in a question: the entropy of the answers' meanings
semantic_sequence_entropy: in a question: the Monte-Carlo entropy of the answers' meanings
semantic_sets: in a question: the number of meanings among the answers
sequence_entropy: in a question: the entropy of the answers as sequences of tokens
sequence_probability: of an answer: the probability of its best beam as a sequence of tokens
stated: of an answer: the one that came with it in a user's file
verbalised: of an answer: what the checkpoint itself says, without an adapter
verifier: of an external verifier, which knows nothing of the checkpoints
"""
