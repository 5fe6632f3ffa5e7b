"""Estimators that need no adapter, one function per file.

Each estimator receives `answers`, the predictions to rate (columns checkpoint, question_id,
question, answer, probability), and the study's `Evidence`, and returns one confidence in
[0, 1] per row. The constant NEEDS next to it lists the columns that it needs, see
`persistcal.confidence.evidence`.

Modules
-------
base_probability: probability of the answer at another checkpoint, the rater
cocoa: probability of the answer, times its agreement with other answers
degree_matrix: mean similarity of two answers to the question
eccentricity: distance of the answers from their centre
end_correct: the position of the checkpoint, whatever the answer
entropy_probe: linear probe on hidden states that predicts semantic entropy
laplacian_eigenvalues: continuous number of meanings among the answers
lexical_similarity: mean ROUGE-L of two answers to the question
linear_probe: linear probe on hidden states, trained on the earlier checkpoints
mean_token_entropy: mean entropy of the model over the answer's tokens
min_token_probability: probability of the answer's least probable token
option_entropy: entropy of the options' probabilities
option_margin: probability of the chosen option minus the next one's
option_probability: probability of the chosen option
p_true: probability that the checkpoint calls the answer true
p_true_few_shot: the same, after judged examples
perplexity: geometric mean of the tokens' probabilities
probability_margin: mean difference of the two most probable tokens
question_probe: linear probe on the hidden state of the question
said_guesses: stated probability of the answer among several guesses
said_probability: stated probability of the answer
said_words: probability of the phrase that the checkpoint chooses
self_certainty: distance of the tokens' distributions from uniform
self_consistency: probability of all beams with the answer's meaning
self_consistency_copy: the last earlier checkpoint's confidence in its own answer
self_consistency_surrogate: probability of the answer at the last earlier checkpoint
semantic_entropy: entropy of the answers' meanings
semantic_sequence_entropy: Monte-Carlo entropy of the answers' meanings
semantic_sets: number of meanings among the answers
sequence_entropy: entropy of the answers as sequences of tokens
sequence_probability: probability of the best beam with the answer
stated: the confidence in a user's file
verbalised: the checkpoint's verbalised digit, without an adapter
verifier: the confidence of an external verifier
"""
