"""How sure an answer is: verbalised confidence, verifiers, probes, calibration.

Modules
-------
asked: ask a checkpoint in words about its answers: with its weights, or behind an API
estimate: let an estimator, a function of the project's or of the user's, rate predictions
estimators/: estimators that need no adapter, one function per file
evidence: what an estimator may know of checkpoints and their answers, and what it returns
gathering: from confidences to predictions: every answer gets the confidence of an estimator
hidden_states: hidden states at the end of a prompt, block by block
needs: what an estimator needs of the answers that it rates, and a refusal where they lack it
packed_forward: run a model on prompts that are packed into trees
packing: prompts that begin alike share their beginning: encode it once
posthoc: post-hoc calibration: a map from confidence to probability, fitted on labelled answers
prompts: the prompts: few-shot questions and answers, and the request for a confidence
said: read a confidence from a reply in words: a probability, guesses with theirs, an expression
scoring: score answers: the confidence that a model with an adapter verbalises
uncertainty: measures of uncertainty of all that was answered to a question
verbalised: verbalised confidence: the mean digit that a model would answer, over nine
verifier: ask a verifier, a model of its own, whether answers are right
"""
