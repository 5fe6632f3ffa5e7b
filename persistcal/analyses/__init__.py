"""Further analyses: those of the paper, and confounds.

Modules
-------
accuracy: accuracy of each checkpoint
adapter_variance: variance of hidden states over the adapters of several seeds
agreement: agreement of two states in which questions became wrong since a third one
answer_baselines: baselines from the text of an answer only
confounds: scores of baselines that know each checkpoint's accuracy on groups of questions only
headroom: gain of the oracle over an external verifier, and its backbone's error rate
transfer: transfer matrices: AUC of adapters trained at one checkpoint and used at each
variance: variance of hidden states between adapters, and its correlation with training
weights: cosine similarity of checkpoints' weights, read piece by piece
"""
