"""Contrast sets, conditioning, metrics and paired bootstrap tests.

Modules
-------
aligned: answers of one model and dataset, aligned by question once, with their contrast sets
bootstrap: every metric on any contrast sets, under the same draws of the questions
claims: the one word about each estimator, and the intervals on which it rests
contrast: gained, lost and unchanged questions of two checkpoints, and conditioning
control: changes of confidence beyond the chance flips of a control
cross_asking: second asks: crossed asks, chance flips and copied answers
draws: draws of questions: counts, and weights of gained and lost questions
evaluate: all metrics of one model and dataset, of each pair, and for any counts
findings: the answer to each question about an update: mark, word, number and evidence
influence: AUCs of strata of questions, and the influence of each question on them
knowledge: knew, moved, knows: statistics that a confidence cannot earn without knowledge
loops: the loop over answers for many replicates of large studies, compiled by numba
metrics: one class per metric: Δ and Δ₀, AUC, Brier score and SmoothECE
pipeline: an evaluation from predictions to tables, as notebook, command and workflow call it
paper_draws: the paper's class-stratified draws, for the marks in its tables
power: the smallest detectable difference, and the number of questions for it
predictions: predictions as arrays by question, with ties joined and spellings checked
proportions: intervals of proportions, comparisons of two values, and distributions
relabelling: few new labels for a later checkpoint, and the threshold that they certify
gate: a release gate: what a policy says on findings
reliability: reliability diagrams, calibration gaps, and the noise floor of SmoothECE
replicates: the samples of all metrics and estimators, and the table that keeps them
samples: one number on the data, on replicates and by seed, and its intervals
selective: selective prediction: risk–coverage curve, AURC, AUGRC and PRR
slices: slices of the questions, such as topics: each question of the verdict within each
settings: the settings of an evaluation, and blocks of estimators; imports nothing
significance: intervals of all metrics, and tests of estimators, all at once
smooth_ece: SmoothECE with automatic bandwidth, for many weightings of answers at once
states: comparisons of checkpoints and of models, and trends
subsets: metrics of groups of questions, and of named kinds of change
thresholds: select a threshold on one checkpoint, and check it on a later one
weighted: weighted AUC, squared errors and mean gaps, and work in threads
"""
