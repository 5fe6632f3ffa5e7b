"""Further analyses of the paper: transfer, hidden states, weights, headroom, accuracy.

Modules
-------
accuracy: accuracy of a checkpoint on a dataset
headroom: what an external verifier leaves to gain, and how much its own backbone knows
hidden_states: hidden states at the end of a prompt, and their variance over adapters
transfer: transfer matrices: how well an adapter of some checkpoints ranks another one's
    answers
variance: how much hidden states vary between adapters, and whether that grows with training
weights: cosine similarity of checkpoints' weights, read piece by piece
"""
