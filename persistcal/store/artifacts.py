"""The tables that rules hand to each other, and their names in the annotations of scripts.

`Table.of` says how columns are described. A frame that is annotated with one of the names is
read and written as that table by `persistcal.store.jobs`.
"""

from typing import Annotated

import pandas as pd

from persistcal.store.tables import (  # noqa: F401  for those who use them with a table
    Table,
    TableError,
    check,
    empty,
    read,
    read_about,
    read_csv,
    sources,
    write,
    write_csv,
)

INTERVAL = "lower_2_5pct?:real upper_97_5pct?:real"
OVER_SEEDS = "n_seeds:int seeds_lower_2_5pct?:real seeds_upper_97_5pct?:real"
CELL = "model! dataset! train_dataset! estimator!"  # of a table of results
# Odds, fitted or cross_fitted; contrast or full; its name
MEASURE = "conditioning! scope! metric!"
OF_ANSWERS = "model checkpoint dataset"

# Split: train, test, few_shot or unused. Options, and which of them is right, counted from 0:
# of multiple choice, else missing
# Truths: JSON of the references at states where something else is true, by checkpoint
QUESTIONS = Table.of(
    "questions",
    "prepare_questions, prepare_atlas or prepare_elements",
    "question_id! index:int split question references:texts any_of:flag category excluded:flag "
    "options?:texts gold?:int truths?",
    about="dataset",
)
Questions = Annotated[pd.DataFrame, QUESTIONS]

# The questions as a state with a context is asked them: with a passage before each
CONTEXTS = QUESTIONS._replace(
    name="contexts", rule="read_context", about=("model", "checkpoint", "dataset")
)
Contexts = Annotated[pd.DataFrame, CONTEXTS]

# Group: what the drift of a pre-training re-weights. Split: of the question that asks for the
# fact; "unused" where none does. Category: likewise of the question
FACTS = Table.of(
    "facts",
    "prepare_atlas or prepare_elements",
    "question_id! relation question answer group weight:real split category",
    about="dataset",
)
Facts = Annotated[pd.DataFrame, FACTS]

# Of beams or samples: tokens with the one that ended it, means over their distributions, and
# the least of their log-probabilities; a user's own answers may come without any of the
# numbers. Of multiple choice an option is a beam; unconditional: its log-probability without
# the question. Stated: JSON of the confidences that came with an answer, by estimator
BEAMS = Table.of(
    "beams",
    "generate_beams",
    "question_id! beam!:int text logprob?:real n_tokens?:int entropy?:real "
    "self_certainty?:real margin?:real min_logprob?:real unconditional?:real stated?",
    about=OF_ANSWERS,
)
Beams = Annotated[pd.DataFrame, BEAMS]

CLUSTERS = Table.of(
    "clusters",
    "cluster_answers",
    "question_id! cluster!:int answer probability:real members:texts",
    about=OF_ANSWERS,
)
Clusters = Annotated[pd.DataFrame, CLUSTERS]

# Whether `one`, as an answer to the question, entails `other`
ENTAILMENTS = Table.of("entailments", "cluster_answers", "question! one! other! entailed:flag")
Entailments = Annotated[pd.DataFrame, ENTAILMENTS]

LABELS = Table.of(
    "labels", "judge_answers", "question_id! cluster!:int label source", about=OF_ANSWERS
)
Labels = Annotated[pd.DataFrame, LABELS]

# Of answers that came with a label; `answer` without case and full stops
GIVEN_LABELS = Table.of(
    "given_labels", "import_answers", "question_id! answer! label", about="dataset"
)
GivenLabels = Annotated[pd.DataFrame, GIVEN_LABELS]

# Of the train and test split; imported predictions have neither texts nor probabilities
ANSWERS = Table.of(
    "answers",
    "judge_answers",
    "question_id! split answer? probability?:real correct:flag",
    about=OF_ANSWERS,
)
Answers = Annotated[pd.DataFrame, ANSWERS]

TRAINING = Table.of(
    "training",
    "train_adapters",
    "step!:int loss:real lr:real seconds:real",
    about="model dataset recipe trained_on seed",
)
Training = Annotated[pd.DataFrame, TRAINING]

SCORES = Table.of(
    "scores",
    "score_answers",
    "answers_of! recipe! trained_on! train_dataset! seed!:int question_id! confidence:real",
    about=f"{OF_ANSWERS} answers",
    place="model checkpoint dataset recipe answers",
)
Scores = Annotated[pd.DataFrame, SCORES]

# Whose answer, and P(yes)
VERIFIED = Table.of(
    "verified",
    "score_with_verifier",
    "checkpoint! question_id! confidence:real",
    about="verifier model dataset",
)
Verified = Annotated[pd.DataFrame, VERIFIED]

# What a checkpoint replies to an estimator that asks it about its answers
REPLIES = Table.of(
    "replies",
    "ask_checkpoint or ask_server",
    "question_id! sample!:int text",
    about=f"{OF_ANSWERS} estimator",
)
Replies = Annotated[pd.DataFrame, REPLIES]

# Answers: predictions on the test split; unsaid: those about which no confidence was said
UNSAID = Table.of(
    "unsaid",
    "read_confidences",
    "checkpoint! answers:int unsaid:int",
    about="model dataset estimator",
)
Unsaid = Annotated[pd.DataFrame, UNSAID]

PREDICTIONS = Table.of(
    "predictions",
    "estimate_confidences",
    "checkpoint! question_id! train_dataset! estimator! seed!:int confidence:real correct:flag",
    about="model dataset",
    place="model dataset estimator",
)
Predictions = Annotated[pd.DataFrame, PREDICTIONS]

# Same answers: questions whose two answers mean the same; unknown of predictions alone
CONTRAST_SETS = Table.of(
    "contrast_sets",
    "count_contrast_sets",
    "model! dataset! earlier! later! size:int improvement:int regression:int kept:flag "
    "same_answers?:int",
    place="model dataset",
)
ContrastSets = Annotated[pd.DataFrame, CONTRAST_SETS]

# Seed: a seed, or "mean". Pairs: those that define a contrast metric, "1 of 3"; empty of
# scope full
METRICS = Table.of(
    "metrics",
    "compute_metrics",
    f"{CELL} {MEASURE} seed! value?:real pairs",
    place="model dataset estimator",
)
Metrics = Annotated[pd.DataFrame, METRICS]

# Lower_5pct, significant: the paper's one-sided test, for the marks in its tables. P-values are
# two-sided. Simultaneous interval, p_adjusted, in_best_set: of all pairs of the block together,
# so that the best can be chosen from the same data; in_best_set is whether `other` cannot be
# distinguished from the best. Seeds: the interval and test over seeds and questions, n_seeds of
# an estimator that has them
SIGNIFICANCE = Table.of(
    "significance",
    "compare_estimators",
    f"model! dataset! train_dataset! block! {MEASURE} best! other! difference?:real "
    f"lower_5pct?:real significant:flag {INTERVAL} p_value?:real p_holm?:real "
    "simultaneous_lower?:real simultaneous_upper?:real p_adjusted?:real in_best_set?:flag "
    f"{OVER_SEEDS} seeds_p_value?:real",
)
Significance = Annotated[pd.DataFrame, SIGNIFICANCE]

# Value: on the data, mean over seeds; by seed: likewise of each. Claims: the replicates
# on which intervals rest, for metrics of gained and lost questions alike, else empty; all NaN
# if there are too few. Improvement, regression: questions of the pair that has fewest
# of the rarer kind. Drawn: digest of the draws; replicates are paired where it is equal
REPLICATES = Table.of(
    "replicates",
    "resample_metrics",
    f"train_dataset! estimator! {MEASURE} value?:real replicates:reals claims:reals "
    "improvement?:int regression?:int drawn "
    "seeds:ints by_seed:reals noise?:real n_effective:real",
    about="model dataset",
    place="model dataset estimator",
)
Replicates = Annotated[pd.DataFrame, REPLICATES]

# Value: mean over seeds. SmoothECE has no interval; its noise floor is its mean over labels
# drawn from the confidences, and p_calibrated is the p-value of calibration. Improvement,
# regression: questions of the pair that has fewest of the rarer kind, for metrics that rest on
# both; too few give no interval
INTERVALS = Table.of(
    "intervals",
    "resample_metrics",
    f"{CELL} {MEASURE} value?:real {INTERVAL} {OVER_SEEDS} improvement?:int regression?:int "
    "noise_floor?:real p_calibrated?:real",
    place="model dataset estimator",
)
Intervals = Annotated[pd.DataFrame, INTERVALS]

# Other model: whose the later checkpoint is; empty within a model. Estimator and seed: empty
# for accuracy. Difference: later - earlier. P-value: two-sided; Holm's is for the pairs of a
# model, or for those of two models
STATES = Table.of(
    "states",
    "compare_states",
    "model! other_model! dataset! earlier! later! estimator! metric! seed! "
    f"earlier_value?:real later_value?:real difference?:real {INTERVAL} p_value?:real "
    "p_holm?:real",
    place="dataset",
)
States = Annotated[pd.DataFrame, STATES]

# Slope: per checkpoint
TRENDS = Table.of(
    "trends",
    "compare_states",
    f"model! dataset! estimator! metric! seed! n_checkpoints:int slope?:real {INTERVAL} "
    "p_value?:real",
    place="dataset",
)
Trends = Annotated[pd.DataFrame, TRENDS]

# A threshold selected on the earlier checkpoint and checked on the later one, on the questions
# that both answered. Verdict: kept, broken, undecided, or empty without a threshold. Labels to
# decide: labelled answers above the threshold; infinite if no number decides
AT_THRESHOLD = (
    "model! dataset! earlier! later! train_dataset! estimator! seed!:int target!:real"
)
THRESHOLDS = Table.of(
    "thresholds",
    "check_thresholds",
    f"{AT_THRESHOLD} delta:real n_questions:int threshold?:real verdict labels_to_decide?:real "
    "least_abstention?:real confident_regressions?:int "
    "earlier_answered?:int earlier_correct?:int earlier_precision?:real earlier_coverage?:real "
    "later_answered?:int later_correct?:int later_precision?:real "
    "later_precision_lower_2_5pct?:real later_precision_upper_97_5pct?:real "
    "later_coverage?:real "
    "precision_change?:real precision_change_lower_2_5pct?:real "
    "precision_change_upper_97_5pct?:real "
    "coverage_change?:real coverage_change_lower_2_5pct?:real "
    "coverage_change_upper_97_5pct?:real",
)
Thresholds = Annotated[pd.DataFrame, THRESHOLDS]

# Selective prediction on all questions of a checkpoint: aurc, augrc and prr
SELECTIVE = Table.of(
    "selective",
    "check_thresholds",
    "model! dataset! checkpoint! train_dataset! estimator! seed!:int metric! value?:real",
)
Selective = Annotated[pd.DataFrame, SELECTIVE]

# Questions by who answers them above the threshold: both, earlier, later or neither
THRESHOLD_CELLS = Table.of(
    "threshold_cells",
    "check_thresholds",
    f"{AT_THRESHOLD} answered! earlier_correct!:flag later_correct!:flag n_questions:int",
)
ThresholdCells = Annotated[pd.DataFrame, THRESHOLD_CELLS]

# Answered above the threshold by both checkpoints, correctly by the earlier one alone
CONFIDENT_REGRESSIONS = Table.of(
    "confident_regressions",
    "check_thresholds",
    f"{AT_THRESHOLD} question_id! earlier_confidence:real later_confidence:real "
    "earlier_answer? later_answer?",
)
ConfidentRegressions = Annotated[pd.DataFrame, CONFIDENT_REGRESSIONS]

ACCURACIES = Table.of(
    "accuracies", "compute_accuracies", "model! checkpoint! dataset! split accuracy:real n:int"
)
Accuracies = Annotated[pd.DataFrame, ACCURACIES]

# Difference: ours - paper. Lower, upper: our 95 % bootstrap interval. Bold: best of its block.
# Underline: not significantly worse
PAPER_COMPARISON = Table.of(
    "paper_comparison",
    "compare_with_paper",
    f"table! {CELL} {MEASURE} ours?:real paper:real difference?:real lower?:real upper?:real "
    "inside?:flag bold?:flag paper_bold:flag underline?:flag paper_underline:flag settings",
)
PaperComparison = Annotated[pd.DataFrame, PAPER_COMPARISON]

# Of the full set, mean over seeds, where the checkpoint's weights score its own answers
TRANSFER = Table.of(
    "transfer",
    "measure_transfer",
    "model! dataset! recipe! trained_on! checkpoint! auc?:real n:int",
)
Transfer = Annotated[pd.DataFrame, TRANSFER]

# Layers from 1
VARIANCES = Table.of(
    "variances", "measure_variance", "question_id! layer!:int variance:real", about=OF_ANSWERS
)
Variances = Annotated[pd.DataFrame, VARIANCES]

# Of variance with the order of checkpoints, over questions
CORRELATIONS = Table.of(
    "correlations",
    "correlate_variance",
    "model! dataset! layer!:int mean_rho?:real median_rho?:real n:int",
)
Correlations = Annotated[pd.DataFrame, CORRELATIONS]

# Attribute: what the baseline knows of a question
CONFOUNDS = Table.of(
    "confounds",
    "measure_confounds",
    f"model! dataset! attribute! n_groups:int delta0_balanced?:real {INTERVAL} "
    "contrast_auc?:real full_auc?:real",
)
Confounds = Annotated[pd.DataFrame, CONFOUNDS]

# Distance: evaluation checkpoints from the earlier to the later. Kept: large enough for the
# contrast metrics, which are means over such pairs. The value, conditioned by odds, may be
# undefined, for example without regressions
PAIRS = Table.of(
    "pairs",
    "measure_pairs",
    f"{CELL} earlier! later! distance:int size:int improvement:int "
    "regression:int kept:flag metric! value?:real",
)
Pairs = Annotated[pd.DataFrame, PAIRS]

# Change: a name among `study.pairs`. Questions: in the contrast sets of its pairs, together.
# Value: conditioned by odds, mean over seeds. Control: another kind of change, and its model;
# above control: the value minus the control's
CHANGES = Table.of(
    "changes",
    "measure_changes",
    "model! dataset! change! train_dataset! estimator! n_pairs:int questions:int "
    "improvement:int regression:int lost_before?:real lost_after?:real metric! value?:real "
    f"{INTERVAL} {OVER_SEEDS} control control_model above_control?:real "
    "above_lower_2_5pct?:real above_upper_97_5pct?:real above_seeds_lower_2_5pct?:real "
    "above_seeds_upper_97_5pct?:real",
)
Changes = Annotated[pd.DataFrame, CHANGES]

# Min contrast: questions of the smallest contrast set that is kept. Improvement, regression:
# questions of the kept pairs together. Kept: the pairs. Pairs:
# those that define the metric, "1 of 3". Chosen: whether the study keeps the same
MIN_CONTRAST = Table.of(
    "min_contrast",
    "measure_pairs",
    f"{CELL} metric! min_contrast!:int improvement:int regression:int kept pairs value?:real "
    "chosen:flag",
)
MinContrast = Annotated[pd.DataFrame, MIN_CONTRAST]

# By: margin between the first two candidates, reference answer, category, the answer's rarity,
# length or popularity, or all. n_contrast: questions over the kept pairs, improvements and
# regressions; flips: their share of those that both checkpoints answered. The
# value is conditioned by odds, mean over seeds
SUBSETS = Table.of(
    "subsets",
    "measure_subsets",
    "by! group! n_answers:int accuracy:real n_contrast:int improvement:int "
    "regression:int flips?:real train_dataset! estimator! scope! metric! value?:real",
    about="model dataset",
)
Subsets = Annotated[pd.DataFrame, SUBSETS]

# First, second: checkpoints. Known: test questions that the reference state answers correctly;
# gone: those of them that a state does not. Category: empty of all
AGREEMENTS = Table.of(
    "agreements",
    "measure_agreement",
    "model! dataset! first! second! category! known:int gone_first:int gone_second:int "
    "gone_both:int kappa?:real",
)
Agreements = Annotated[pd.DataFrame, AGREEMENTS]

# Headroom: contrast AUC of the oracle - that of the verifier. Error rate: of the verifier's
# backbone on the contrast questions. n: questions in a kept contrast set
HEADROOM = Table.of(
    "headroom",
    "measure_headroom",
    f"model! dataset! headroom?:real {INTERVAL} error_rate?:real n:int",
)
Headroom = Annotated[pd.DataFrame, HEADROOM]

WEIGHT_SIMILARITIES = Table.of(
    "weight_similarities", "compare_weights", "model! earlier! later! cosine:real n_weights:int"
)
WeightSimilarities = Annotated[pd.DataFrame, WEIGHT_SIMILARITIES]

# Group: contrast, non_contrast or all. Lower, upper: 95 % Wilson interval. Kappa: of the
# agreement with the judge
AUDIT_AGREEMENTS = Table.of(
    "audit_agreements",
    "summarise_audit",
    "group! measure! count:int n:int share?:real lower?:real upper?:real kappa?:real",
)
AuditAgreements = Annotated[pd.DataFrame, AUDIT_AGREEMENTS]

# Estimator: empty where the number is about answers alone. Metric: accuracy_earlier,
# accuracy_later, contrast_size, improvement, regression (questions), or a contrast metric by
# odds. Audited: questions that a person labelled
CORRECTIONS = Table.of(
    "corrections",
    "correct_results",
    "model! dataset! earlier! later! train_dataset! estimator! metric! judged?:real "
    f"corrected?:real {INTERVAL} n_questions:int n_audited:int",
)
Corrections = Annotated[pd.DataFrame, CORRECTIONS]

MISSING = Table.of("missing", "import_release", "model! dataset! estimator! checkpoint! path!")
Missing = Annotated[pd.DataFrame, MISSING]
