"""Further analyses of the paper, and confounds.

Modules
-------
accuracy: accuracy of each checkpoint, and agreement of two on new errors
confounds: baselines from attributes of the question or from the answer's text only
transfer: adapters at other checkpoints, variance of hidden states, and the oracle's gain
weights: cosine similarity of checkpoints' weights, read piece by piece
"""
