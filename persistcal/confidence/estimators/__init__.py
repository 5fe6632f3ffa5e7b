"""Estimators without an adapter: functions in five families, and their catalogue.

Each estimator receives `answers`, the predictions to rate (columns checkpoint, question_id,
question, answer, probability), and the study's `Evidence`, and returns one confidence in
[0, 1] per row. The catalogue has the display name, the needs and the config keys of each.
"""
