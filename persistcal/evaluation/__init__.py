"""Contrast sets, conditioning, metrics and paired bootstrap tests.

Modules
-------
arrange: arrange the predictions of one model and dataset as arrays, or say why they cannot
    be
conditioning: confidences in the two answers to a question, given that exactly one is
    correct
contrast: contrast sets: the questions that one checkpoint answers correctly and another
    does not
draws: paired, class-stratified bootstrap draws of questions, as multiplicities
evaluate: all metrics of the predictions of one model and dataset
loops: loops over answers for many replicates at once, compiled by numba
measures: the names of all metrics: how each is printed, and which direction is better
metrics: every metric of confidences, once: under weights, of which the plain metric has
    ones
question_ids: whether checkpoints are about the same questions, and call them by the same
    names
reliability: reliability diagrams: accuracy as a smooth function of confidence, with a
    bootstrap band
replicates: bootstrap replicates as a table, so that each estimator's can be made on its own
significance: which estimators the best one of a comparison block significantly outperforms
smooth_ece: smoothECE with automatic bandwidth, of many weightings of the same answers at
    once
smoothing: smoothing by reflected Gaussians on the grids of `relplot`, as matrices
ties: numbers that would be equal but for rounding are made equal
weightings: smoothECE at given bandwidths, of the same answers under many weightings at once
"""
