"""Estimators that need no adapter, one function per file.

Each is given `answers`, the predictions to rate (columns checkpoint, question_id,
question, answer, probability), and the `Evidence` that the study has, and returns
one confidence in [0, 1] for each row. What it needs of the answers stands beside it as
NEEDS, see `persistcal.confidence.needs`.

Modules
-------
end_correct: confidence that knows only how late a checkpoint is
linear_probe: a linear probe on hidden states, trained on the earlier checkpoints
self_consistency: confidence of an answer: the share of the beams' probability that means
    the same
self_consistency_copy: confidence of an answer: the last earlier checkpoint's in its own,
    whatever it is
self_consistency_surrogate: confidence in a checkpoint's answers that is taken from the last
    earlier checkpoint
sequence_probability: confidence of an answer: the probability of its best beam as a
    sequence of tokens
verifier: confidence of an external verifier, which knows nothing of the checkpoints
"""
