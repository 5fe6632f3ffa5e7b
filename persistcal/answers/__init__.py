"""Answers of a checkpoint: beam search, groups of equal meaning, the prediction."""
