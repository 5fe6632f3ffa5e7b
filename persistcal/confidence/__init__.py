"""Confidence in an answer: verbalised, by a verifier, by probes; calibration.

Modules
-------
asking: ask a checkpoint, loaded or served, how sure it is of its answers
calibration: post-hoc calibration maps, fitted on labelled answers
confounds: baselines from attributes of the question or from the answer's text only
estimate: run an estimator, the project's or a user's, on all predictions
estimators/: estimators without an adapter, one function each
evidence: the inputs of an estimator, and a check that they are present
registry: registrations of estimators: display names, needs and config keys
said: read probabilities, guesses and phrases from replies in words
uncertainty: measures of uncertainty over all answers to a question
verbalised: next-token probabilities: the mean digit that a model answers, a verifier's word
"""
