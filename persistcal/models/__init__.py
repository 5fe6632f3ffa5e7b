"""Checkpoints: find and fetch them, pre-train them, load them, run them in batches."""
