"""Further analyses of the paper, and confounds.

Modules
-------
accuracy: accuracy of each checkpoint, and agreement of two on new errors
confounds: baselines from attributes of the question or from the answer's text only
transfer: adapters used at other checkpoints, and the oracle's gain over a verifier
variance: variance of hidden states between adapters, and its correlation with training
weights: cosine similarity of checkpoints' weights, read piece by piece
"""
