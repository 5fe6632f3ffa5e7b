"""Contrast sets, conditioning, metrics and paired bootstrap tests.

Modules
-------
changes: metrics of named kinds of change, and their differences from a control
conditioning: confidence in two answers to a question, given that exactly one is right
contrast: questions that exactly one of two checkpoints answers correctly
draws: bootstrap draws of questions: counts, and weights of gained and lost questions
evaluate: all metrics of one model and dataset, for any counts of the questions
loops: loops over answers for many replicates at once, compiled by numba
metrics: AUC, Brier score, SmoothECE and gaps, and the names of all metrics
noise_floor: the noise floor of SmoothECE, and a test of calibration
power: the smallest detectable difference, and the number of questions for it
predictions: predictions as arrays by question, with ties joined and spellings checked
proportions: intervals of proportions, and comparisons of two on the same questions
relabelling: few new labels for a later checkpoint, and the threshold that they certify
reliability: accuracy as a smooth function of confidence, with a bootstrap band
replicates: bootstrap replicates of metrics
selective: selective prediction: risk–coverage curve, AURC, AUGRC and PRR
significance: tests of each estimator against the best one, over questions and seeds
simultaneous: all pairs of estimators at once, by the bootstrap of the maximum
smooth_ece: SmoothECE with automatic bandwidth, for many weightings of answers at once
states: comparisons of checkpoints and of models, and trends
subsets: metrics of each pair of checkpoints, kind of change, and group of questions
thresholds: select a threshold on one checkpoint, and check it on a later one
"""
