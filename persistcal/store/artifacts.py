"""Define the tables that rules pass to each other, and their names in annotations.

`Table.parse` explains how columns are described. `persistcal.store.jobs` reads and writes a
frame as the table in its annotation.
"""

from typing import Annotated

import pandas as pd

from persistcal.store.tables import (  # noqa: F401  re-exported for users of tables
    Table,
    TableError,
    check,
    empty,
    read,
    read_csv,
    read_files,
    sources,
    write,
    write_csv,
)

INTERVAL = "lower_2_5pct?:real upper_97_5pct?:real"
OVER_SEEDS = "n_seeds:int seeds_lower_2_5pct?:real seeds_upper_97_5pct?:real"
CELL = "model! dataset! train_dataset! estimator!"  # a cell of a table of results
# Conditioning: odds, fitted or cross_fitted. Scope: contrast or full
MEASURE = "conditioning! scope! metric!"
CHECKPOINT_FILE = "model@ checkpoint@ dataset@"

# Split: train, test, few_shot or unused. Options, gold: the options of multiple choice and the
# index of the correct one, else missing. Truths: JSON of references by checkpoint, for
# checkpoints at which other answers are correct
QUESTIONS = Table.parse(
    "questions",
    "prepare_questions, prepare_atlas or prepare_elements",
    "dataset@ question_id! index:int split question references:texts any_of:flag category "
    "excluded:flag options?:texts gold?:int truths?",
)
Questions = Annotated[pd.DataFrame, QUESTIONS]

# Questions for a checkpoint with a context: each begins with a passage
CONTEXTS = QUESTIONS._replace(
    name="contexts", rule="read_context", file_columns=("model", "checkpoint", "dataset")
)
Contexts = Annotated[pd.DataFrame, CONTEXTS]

# Group: facts with the same weight at each step of a drift. Split, category: copied from the
# question that asks for the fact; the split is "unused" if no question does
FACTS = Table.parse(
    "facts",
    "prepare_atlas or prepare_elements",
    "dataset@ question_id! relation question answer group weight:real split category",
)
Facts = Annotated[pd.DataFrame, FACTS]

# Beams or samples. Tokens include the final one; entropy (in nats), self-certainty and margin
# are means over tokens, min_logprob is the smallest log-probability of a token. A user's own
# answers can lack all numbers. In multiple choice a beam is an option, and `unconditional` its
# log-probability without the question. Stated: JSON of an answer's stated confidences, by
# estimator
BEAMS = Table.parse(
    "beams",
    "generate_beams",
    f"{CHECKPOINT_FILE} question_id! beam!:int text logprob?:real n_tokens?:int "
    "entropy?:real self_certainty?:real margin?:real min_logprob?:real unconditional?:real "
    "stated?",
)
Beams = Annotated[pd.DataFrame, BEAMS]

CLUSTERS = Table.parse(
    "clusters",
    "cluster_answers",
    f"{CHECKPOINT_FILE} question_id! cluster!:int answer probability:real members:texts",
)
Clusters = Annotated[pd.DataFrame, CLUSTERS]

# Entailed: whether the answer `one` to the question entails the answer `other`
ENTAILMENTS = Table.parse(
    "entailments", "cluster_answers", "question! one! other! entailed:flag"
)

LABELS = Table.parse(
    "labels", "judge_answers", f"{CHECKPOINT_FILE} question_id! cluster!:int label source"
)
Labels = Annotated[pd.DataFrame, LABELS]

# Labels that users give with their answers; `answer` is lower case without full stops
GIVEN_LABELS = Table.parse(
    "given_labels", "import_answers", "dataset@ question_id! answer! label"
)
GivenLabels = Annotated[pd.DataFrame, GIVEN_LABELS]

# The train and test split; imported predictions have neither texts nor probabilities
ANSWERS = Table.parse(
    "answers",
    "judge_answers",
    f"{CHECKPOINT_FILE} question_id! split answer? probability?:real correct:flag",
)
Answers = Annotated[pd.DataFrame, ANSWERS]

TRAINING = Table.parse(
    "training",
    "train_adapters",
    "model@ dataset@ recipe@ trained_on@ seed@ step!:int loss:real lr:real seconds:real",
)
Training = Annotated[pd.DataFrame, TRAINING]

SCORES = Table.parse(
    "scores",
    "score_answers",
    f"{CHECKPOINT_FILE} answers@ answers_of! recipe! trained_on! train_dataset! seed!:int "
    "question_id! confidence:real",
    place="model checkpoint dataset recipe answers",
)
Scores = Annotated[pd.DataFrame, SCORES]

# Checkpoint: the one that answered. Confidence: P(yes)
VERIFIED = Table.parse(
    "verified",
    "score_with_verifier",
    "verifier@ model@ dataset@ checkpoint! question_id! confidence:real",
)
Verified = Annotated[pd.DataFrame, VERIFIED]

# A checkpoint's replies to an estimator's questions about its answers
REPLIES = Table.parse(
    "replies",
    "ask_checkpoint or ask_server",
    f"{CHECKPOINT_FILE} estimator@ question_id! sample!:int text",
)
Replies = Annotated[pd.DataFrame, REPLIES]

# Answers: number of predictions on the test split. Unsaid: number without a stated confidence
UNSAID = Table.parse(
    "unsaid",
    "read_confidences",
    "model@ dataset@ estimator@ checkpoint! answers:int unsaid:int",
)
Unsaid = Annotated[pd.DataFrame, UNSAID]

PREDICTIONS = Table.parse(
    "predictions",
    "estimate_confidences",
    "model@ dataset@ checkpoint! question_id! train_dataset! estimator! seed!:int "
    "confidence:real correct:flag",
    place="model dataset estimator",
)
Predictions = Annotated[pd.DataFrame, PREDICTIONS]

# Same answers: number of questions with two equivalent answers; missing without texts
CONTRAST_SETS = Table.parse(
    "contrast_sets",
    "count_contrast_sets",
    "model! dataset! earlier! later! size:int improvement:int regression:int kept:flag "
    "same_answers?:int",
    place="model dataset",
)
ContrastSets = Annotated[pd.DataFrame, CONTRAST_SETS]

# Seed: a seed, or "mean". Pairs: number of pairs with a defined contrast metric, "1 of 3";
# empty for scope full
METRICS = Table.parse(
    "metrics",
    "compute_metrics",
    f"{CELL} {MEASURE} seed! value?:real pairs",
    place="model dataset estimator",
)
Metrics = Annotated[pd.DataFrame, METRICS]

# Lower_5pct, significant: the paper's one-sided test, for the marks in its tables. P-values are
# two-sided. Simultaneous interval, p_adjusted, in_best_set: for all pairs of a block together,
# so that the best can be chosen from the same data; in_best_set is true if `other` cannot be
# distinguished from the best. Significant and in_best_set are missing without a test. Seeds:
# the interval and test over seeds and questions
SIGNIFICANCE = Table.parse(
    "significance",
    "compare_estimators",
    f"model! dataset! train_dataset! block! {MEASURE} best! other! difference?:real "
    f"lower_5pct?:real significant?:flag {INTERVAL} p_value?:real p_holm?:real "
    "simultaneous_lower?:real simultaneous_upper?:real p_adjusted?:real in_best_set?:flag "
    f"{OVER_SEEDS} seeds_p_value?:real",
)
Significance = Annotated[pd.DataFrame, SIGNIFICANCE]

# Value: on the data, mean over seeds. By seed: the values of single seeds. Claims: replicates
# for intervals of metrics that need both gained and lost questions, else empty; all NaN if
# there are too few. Improvement, regression: questions of the pair with fewest of the rarer
# kind. Drawn: digest of the draws; replicates are paired if it is equal
REPLICATES = Table.parse(
    "replicates",
    "resample_metrics",
    f"model@ dataset@ train_dataset! estimator! {MEASURE} value?:real replicates:reals "
    "claims:reals improvement?:int regression?:int drawn seeds:ints by_seed:reals "
    "noise?:real n_effective:real",
    place="model dataset estimator",
)
Replicates = Annotated[pd.DataFrame, REPLICATES]

# Value: mean over seeds. SmoothECE has no interval; its noise floor is its mean over labels
# drawn from the confidences, and p_calibrated is the p-value of calibration. Improvement,
# regression: questions of the pair with fewest of the rarer kind, for metrics that need both;
# too few give no interval
INTERVALS = Table.parse(
    "intervals",
    "resample_metrics",
    f"{CELL} {MEASURE} value?:real {INTERVAL} {OVER_SEEDS} improvement?:int regression?:int "
    "noise_floor?:real p_calibrated?:real",
    place="model dataset estimator",
)
Intervals = Annotated[pd.DataFrame, INTERVALS]

# Other model: the later checkpoint's, or empty within a model. Estimator and seed: empty for
# accuracy. Difference: later - earlier. P-value: two-sided; Holm's correction covers all pairs
# of a model, or all pairs of two models
STATES = Table.parse(
    "states",
    "compare_states",
    "model! other_model! dataset! earlier! later! estimator! metric! seed! "
    f"earlier_value?:real later_value?:real difference?:real {INTERVAL} p_value?:real "
    "p_holm?:real",
    place="dataset",
)
States = Annotated[pd.DataFrame, STATES]

# Slope: per checkpoint
TRENDS = Table.parse(
    "trends",
    "compare_states",
    f"model! dataset! estimator! metric! seed! n_checkpoints:int slope?:real {INTERVAL} "
    "p_value?:real",
    place="dataset",
)
Trends = Annotated[pd.DataFrame, TRENDS]

# A threshold selected on the earlier checkpoint and checked on the later one, on the questions
# with two answers. Verdict: kept, broken, undecided, or empty without a threshold. Labels to
# decide: labelled answers above the threshold; infinite if no number decides
AT_THRESHOLD = (
    "model! dataset! earlier! later! train_dataset! estimator! seed!:int target!:real"
)
THRESHOLDS = Table.parse(
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
SELECTIVE = Table.parse(
    "selective",
    "check_thresholds",
    "model! dataset! checkpoint! train_dataset! estimator! seed!:int metric! value?:real",
)
Selective = Annotated[pd.DataFrame, SELECTIVE]

# What sheets of labels certify. Labels: fresh, or carried if unchanged
LABEL_CURVE = Table.parse(
    "label_curve",
    "persistcal label-curve",
    "labels! n_labels!:int n_sheets:int target:real threshold?:real precision?:real "
    "coverage?:real certified:real below_target:real",
)

# Answered: who answers above the threshold, which is both, earlier, later or neither
THRESHOLD_CELLS = Table.parse(
    "threshold_cells",
    "check_thresholds",
    f"{AT_THRESHOLD} answered! earlier_correct!:flag later_correct!:flag n_questions:int",
)
ThresholdCells = Annotated[pd.DataFrame, THRESHOLD_CELLS]

# Questions that both checkpoints answer above the threshold and only the earlier correctly
CONFIDENT_REGRESSIONS = Table.parse(
    "confident_regressions",
    "check_thresholds",
    f"{AT_THRESHOLD} question_id! earlier_confidence:real later_confidence:real "
    "earlier_answer? later_answer?",
)
ConfidentRegressions = Annotated[pd.DataFrame, CONFIDENT_REGRESSIONS]

ACCURACIES = Table.parse(
    "accuracies", "compute_accuracies", "model! checkpoint! dataset! split accuracy:real n:int"
)
Accuracies = Annotated[pd.DataFrame, ACCURACIES]

# Difference: ours - paper. Lower, upper: our 95 % bootstrap interval. Bold: best of its block.
# Underline: not significantly worse
PAPER_COMPARISON = Table.parse(
    "paper_comparison",
    "compare_with_paper",
    f"table! {CELL} {MEASURE} ours?:real paper:real difference?:real lower?:real "
    "upper?:real inside?:flag bold?:flag paper_bold:flag underline?:flag "
    "paper_underline:flag settings",
)
PaperComparison = Annotated[pd.DataFrame, PAPER_COMPARISON]

# AUC: of the full set, mean over seeds; the checkpoint's weights score its own answers
TRANSFER = Table.parse(
    "transfer",
    "measure_transfer",
    "model! dataset! recipe! trained_on! checkpoint! auc?:real n:int",
)
Transfer = Annotated[pd.DataFrame, TRANSFER]

# Layers from 1
VARIANCES = Table.parse(
    "variances", "measure_variance", f"{CHECKPOINT_FILE} question_id! layer!:int variance:real"
)
Variances = Annotated[pd.DataFrame, VARIANCES]

# Spearman's rho of variance with the order of checkpoints, over questions
CORRELATIONS = Table.parse(
    "correlations",
    "correlate_variance",
    "model! dataset! layer!:int mean_rho?:real median_rho?:real n:int",
)
Correlations = Annotated[pd.DataFrame, CORRELATIONS]

# Attribute: the feature of a question that the baseline uses
CONFOUNDS = Table.parse(
    "confounds",
    "measure_confounds",
    f"model! dataset! attribute! n_groups:int delta0_balanced?:real {INTERVAL} "
    "contrast_auc?:real full_auc?:real",
)
Confounds = Annotated[pd.DataFrame, CONFOUNDS]

# Distance: evaluation checkpoints from the earlier to the later. Kept: large enough for the
# contrast metrics, which are means over kept pairs. The value, conditioned by odds, can be
# undefined, for example without regressions
PAIRS = Table.parse(
    "pairs",
    "measure_pairs",
    f"{CELL} earlier! later! distance:int size:int improvement:int regression:int kept:flag "
    "metric! value?:real",
)
Pairs = Annotated[pd.DataFrame, PAIRS]

# Change: a name in `study.pairs`. Questions: total size of the contrast sets of its pairs.
# Value: conditioned by odds, mean over seeds. Control: another kind of change, and its model;
# above control: the value minus the control's
CHANGES = Table.parse(
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
# questions of all kept pairs. Kept: the pairs. Pairs: number of pairs with a defined metric,
# "1 of 3". Chosen: whether the study keeps the same pairs
MIN_CONTRAST = Table.parse(
    "min_contrast",
    "measure_pairs",
    f"{CELL} metric! min_contrast!:int improvement:int regression:int kept pairs "
    "value?:real chosen:flag",
)
MinContrast = Annotated[pd.DataFrame, MIN_CONTRAST]

# By: margin between the first two candidates, reference answer, category, the answer's rarity,
# length or popularity, or all. n_contrast: improvements and regressions of the kept pairs.
# Flips: their share of the questions with two answers. The value is conditioned by odds, mean
# over seeds
SUBSETS = Table.parse(
    "subsets",
    "measure_subsets",
    "model@ dataset@ by! group! n_answers:int accuracy:real n_contrast:int improvement:int "
    "regression:int flips?:real train_dataset! estimator! scope! metric! value?:real",
)
Subsets = Annotated[pd.DataFrame, SUBSETS]

# First, second: checkpoints. Known: test questions that the reference checkpoint answers
# correctly; gone: the known questions that another checkpoint answers wrongly. Category: empty
# for all questions
AGREEMENTS = Table.parse(
    "agreements",
    "measure_agreement",
    "model! dataset! first! second! category! known:int gone_first:int gone_second:int "
    "gone_both:int kappa?:real",
)
Agreements = Annotated[pd.DataFrame, AGREEMENTS]

# Headroom: contrast AUC of the oracle minus contrast AUC of the verifier. Error rate: errors of
# the verifier's backbone on the contrast questions. n: questions in a kept contrast set
HEADROOM = Table.parse(
    "headroom",
    "measure_headroom",
    f"model! dataset! headroom?:real {INTERVAL} error_rate?:real n:int",
)
Headroom = Annotated[pd.DataFrame, HEADROOM]

WEIGHT_SIMILARITIES = Table.parse(
    "weight_similarities", "compare_weights", "model! earlier! later! cosine:real n_weights:int"
)
WeightSimilarities = Annotated[pd.DataFrame, WEIGHT_SIMILARITIES]

# Group: contrast, non_contrast or all. Lower, upper: 95 % Wilson interval. Kappa: agreement
# with the judge
AUDIT_AGREEMENTS = Table.parse(
    "audit_agreements",
    "summarise_audit",
    "group! measure! count:int n:int share?:real lower?:real upper?:real kappa?:real",
)
AuditAgreements = Annotated[pd.DataFrame, AUDIT_AGREEMENTS]

# Estimator: empty if the number needs no confidences. Metric: accuracy_earlier,
# accuracy_later, contrast_size, improvement, regression (questions), or a contrast metric by
# odds. Audited: questions that a person labelled
CORRECTIONS = Table.parse(
    "corrections",
    "correct_results",
    "model! dataset! earlier! later! train_dataset! estimator! metric! judged?:real "
    f"corrected?:real {INTERVAL} n_questions:int n_audited:int",
)
Corrections = Annotated[pd.DataFrame, CORRECTIONS]

MISSING = Table.parse(
    "missing", "import_release", "model! dataset! estimator! checkpoint! path!"
)
Missing = Annotated[pd.DataFrame, MISSING]
