"""Checkpoints: find and fetch them, load them, run them in batches."""
