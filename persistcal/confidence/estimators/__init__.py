"""Estimators that need no adapter, one function per file.

Each is given `answers`, the predictions to rate (columns checkpoint, question_id,
question, answer, probability), and the `Evidence` that the study has, and returns
one confidence in [0, 1] for each row.
"""
