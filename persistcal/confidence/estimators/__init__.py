"""Estimators without an adapter: functions in five families, and their catalogue.

Each estimator receives `answers`, the predictions to rate (columns checkpoint, question_id,
question, answer, probability), and the study's `Evidence`, and returns one confidence in
[0, 1] per row. The catalogue has the display name, the needs and the config keys of each.

Modules
-------
catalogue: registrations of all functions, which the Snakefile imports
meaning: self-consistency, semantic entropy, similarities of the answers, controls
probabilities: probabilities of the answer's tokens, of sequences and of options
probes: linear probes on hidden states, and the choice of their layer
raters: verbalised digits, P(True), probabilities by another checkpoint, an external verifier
replies: probabilities, guesses and expressions in replies; confidences in a user's file
"""
