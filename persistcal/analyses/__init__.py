"""Further analyses: those of the paper, and confounds and spread over pre-trainings.

Modules
-------
accuracy: accuracy of a checkpoint on a dataset
confounds: what a baseline gets that knows no fact: only each checkpoint's accuracy on groups
distance: metrics of each pair of checkpoints, and how they change with the distance of the
    two
headroom: what an external verifier leaves to gain, and how much its own backbone knows
hidden_states: hidden states at the end of a prompt, and their variance over adapters
transfer: transfer matrices: how well an adapter of some checkpoints ranks another one's
    answers
variance: how much hidden states vary between adapters, and whether that grows with training
weights: cosine similarity of checkpoints' weights, read piece by piece
worlds: mean and spread of metrics over models that differ in the seed of their pre-training
"""
