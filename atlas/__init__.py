"""The demo's world: facts, a corpus of texts about them, and a small pre-training."""
