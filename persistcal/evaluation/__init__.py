"""Contrast sets, conditioning, metrics and paired bootstrap tests.

Modules
-------
arrange: the predictions of one model and dataset as arrays, or why they cannot be arranged
changes: metrics of named kinds of change, and their differences from a control
comparisons: states against each other: two checkpoints of a model, two models, and trends
conditioning: confidences in the two answers to a question, given that exactly one is right
contrast: the questions that exactly one of two checkpoints answers correctly
directions: replicates of the metrics that rest on gained and on lost questions alike
draws: paired, class-stratified bootstrap draws of questions, as multiplicities
evaluate: all metrics of one model and dataset, under any counts of the questions
loops: loops over answers for many replicates at once, compiled by numba
measures: the names of all metrics: how each is printed, and which direction is better
metrics: AUC, Brier score, SmoothECE and gaps, weighted, of the full set and of contrast sets
parts: metrics of each pair of checkpoints, and group of questions
noise_floor: the noise floor of SmoothECE, and a test of calibration
parts: metrics of each pair of checkpoints, kind of change, and group of questions
power: the smallest difference that a study would find, and the questions that it takes
proportions: shares of questions: their intervals, and two shares of the same questions compared
question_ids: question identifiers compared between checkpoints, and their other spellings
recipes: intervals over seeds and questions: of a recipe, and not of the adapters at hand
relabelling: few new labels for a later checkpoint, and the threshold that they certify
reliability: accuracy as a smooth function of confidence, with a bootstrap band
replicates: bootstrap replicates of metrics, and the table that keeps them
selective: selective prediction: risk–coverage curve, AURC, AUGRC and PRR
significance: estimators that the best one of a comparison block significantly outperforms
significance: the best estimator of each comparison block against the others, on each metric
simultaneous: all pairs of estimators compared at once, by the bootstrap of the maximum
smooth_ece: smoothECE with automatic bandwidth, for many weightings of answers at once
thresholds: select a threshold on one checkpoint, and check it on a later one
ties: numbers that would be equal but for rounding are made equal
"""
