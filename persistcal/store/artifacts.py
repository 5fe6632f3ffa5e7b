"""Define the tables that rules pass to each other, and their names in annotations.

`Table.parse` explains how columns are described. `persistcal.store.jobs` reads and writes a
frame as the table in its annotation. docs/data/columns.yaml explains the columns, for
docs/outputs.md: an edit of an explanation reruns no job.
"""

from typing import Annotated

import pandas as pd

from persistcal.store.tables import (  # noqa: F401  re-exported for users of tables
    Table,
    TableError,
    check,
    csv_text,
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
MEASURE = "conditioning! scope! metric!"
CHECKPOINT_FILE = "model@ checkpoint@ dataset@"
SPLIT_FILE = f"{CHECKPOINT_FILE} split@"  # split of answers, see `persistcal.questions.splits`

# Truths are the references of checkpoints with other correct answers.
QUESTIONS = Table.parse(
    "questions from prepare_questions, prepare_atlas or prepare_elements",
    "dataset@ question_id! index:int split question references:texts any_of:flag category "
    "excluded:flag options?:texts gold?:int truths? group=",
)
Questions = Annotated[pd.DataFrame, QUESTIONS]

# Questions for a checkpoint with a context: each begins with a passage
CONTEXTS = QUESTIONS._replace(
    name="contexts", rule="read_context", file_columns=("model", "checkpoint", "dataset")
)
Contexts = Annotated[pd.DataFrame, CONTEXTS]

# Split and category are copied from the question that asks for the fact; the split is
# "unused" if no question does.
FACTS = Table.parse(
    "facts from prepare_atlas or prepare_elements",
    "dataset@ question_id! relation question answer group weight:real split category",
)
Facts = Annotated[pd.DataFrame, FACTS]

# Beams, samples or options. A user's own answers can lack all numbers.
BEAMS = Table.parse(
    "beams from generate_beams",
    f"{SPLIT_FILE} question_id! beam!:int text logprob?:real n_tokens?:int "
    "entropy?:real self_certainty?:real margin?:real min_logprob?:real unconditional?:real "
    "stated?",
)
Beams = Annotated[pd.DataFrame, BEAMS]

CLUSTERS = Table.parse(
    "clusters from cluster_answers",
    f"{SPLIT_FILE} question_id! cluster!:int answer probability:real members:texts",
)
Clusters = Annotated[pd.DataFrame, CLUSTERS]

ENTAILMENTS = Table.parse(
    "entailments from cluster_answers", "question! one! other! entailed:flag"
)

LABELS = Table.parse(
    "labels from judge_answers", f"{SPLIT_FILE} question_id! cluster!:int label source"
)
Labels = Annotated[pd.DataFrame, LABELS]

# Labels that users give with their answers
GIVEN_LABELS = Table.parse(
    "given_labels from import_answers", "dataset@ question_id! answer! label"
)
GivenLabels = Annotated[pd.DataFrame, GIVEN_LABELS]

# Imported predictions have neither texts nor probabilities
ANSWERS = Table.parse(
    "answers from judge_answers",
    f"{SPLIT_FILE} question_id! answer? probability?:real correct:flag",
)
Answers = Annotated[pd.DataFrame, ANSWERS]

TRAINING = Table.parse(
    "training from train_adapters",
    "model@ dataset@ recipe@ trained_on@ seed@ step!:int loss:real lr:real seconds:real",
)
Training = Annotated[pd.DataFrame, TRAINING]

SCORES = Table.parse(
    "scores from score_answers",
    f"{CHECKPOINT_FILE} answers@ answers_of! recipe! trained_on! train_dataset! seed!:int "
    "question_id! confidence:real",
    path_columns="model checkpoint dataset recipe answers",
)
Scores = Annotated[pd.DataFrame, SCORES]

VERIFIED = Table.parse(
    "verified from score_with_verifier",
    "verifier@ model@ dataset@ checkpoint! question_id! confidence:real",
)
Verified = Annotated[pd.DataFrame, VERIFIED]

# Replies of a checkpoint to an estimator's questions about the checkpoint's answers
REPLIES = Table.parse(
    "replies from ask_checkpoint or ask_server",
    f"{SPLIT_FILE} estimator@ question_id! sample!:int text",
)
Replies = Annotated[pd.DataFrame, REPLIES]

UNSAID = Table.parse(
    "unsaid from read_confidences",
    "model@ dataset@ estimator@ checkpoint! answers:int unsaid:int",
)
Unsaid = Annotated[pd.DataFrame, UNSAID]

# The confidence of each answer, without the label. Copied confidences exist for the questions
# that the other checkpoint answered.
CONFIDENCES = Table.parse(
    "confidences from estimate_confidences, gather_confidences or read_confidences",
    "model@ dataset@ estimator@ checkpoint! split! question_id! train_dataset! seed!:int "
    "confidence:real",
)
Confidences = Annotated[pd.DataFrame, CONFIDENCES]

PREDICTIONS = Table.parse(
    "predictions from join_labels",
    "model@ dataset@ checkpoint! question_id! train_dataset! estimator! seed!:int "
    "confidence:real correct:flag ask!:int=0 group=",
    path_columns="model dataset estimator",
)
Predictions = Annotated[pd.DataFrame, PREDICTIONS]

COUNTED = "earlier! later! size:int improvement:int regression:int kept:flag same_answers?:int"
CONTRAST_SETS = Table.parse("contrast_sets from collect_results", f"model! dataset! {COUNTED}")
ContrastSets = Annotated[pd.DataFrame, CONTRAST_SETS]

# The contrast sets that all evaluations of a model and dataset read
CONTRAST_MEMBERS = Table.parse(
    "contrast_members from list_contrast_sets",
    f"model@ dataset@ {COUNTED} gained:texts lost:texts stayed_wrong:texts stayed_right:texts",
)
ContrastMembers = Annotated[pd.DataFrame, CONTRAST_MEMBERS]

CONTRAST_QUESTIONS = Table.parse(
    "contrast_questions from list_contrast_sets",
    "model@ dataset@ earlier! later! question_id! improvement:flag kept:flag earlier_answer? "
    "later_answer?",
)
ContrastQuestions = Annotated[pd.DataFrame, CONTRAST_QUESTIONS]

# Pairs are empty for the scope full.
METRICS = Table.parse(
    "metrics from evaluate_estimator",
    f"{CELL} {MEASURE} seed! value?:real pairs",
    path_columns="model dataset estimator",
)
Metrics = Annotated[pd.DataFrame, METRICS]

# The paper's one-sided test is for the marks in its tables. Simultaneous columns are for all
# pairs of a block together, so that the best can be chosen from the same data.
SIGNIFICANCE = Table.parse(
    "significance from compare_table",
    f"model! dataset! train_dataset! block! {MEASURE} best! other! difference?:real "
    f"lower_5pct?:real significant?:flag {INTERVAL} p_value?:real p_holm?:real "
    "simultaneous_lower?:real simultaneous_upper?:real p_adjusted?:real in_best_set?:flag "
    f"{OVER_SEEDS} seeds_p_value?:real",
)
Significance = Annotated[pd.DataFrame, SIGNIFICANCE]

REPLICATES = Table.parse(
    "replicates from evaluate_estimator",
    f"model@ dataset@ train_dataset! estimator! {MEASURE} value?:real replicates:reals "
    "claims:reals probes:reals improvement?:int regression?:int drawn seeds:ints by_seed:reals "
    "noise?:real n_effective:real",
    path_columns="model dataset estimator",
)
Replicates = Annotated[pd.DataFrame, REPLICATES]

# SmoothECE has no interval. The noise floor is the mean SmoothECE of labels that are drawn from
# the confidences.
INTERVALS = Table.parse(
    "intervals from evaluate_estimator",
    f"{CELL} {MEASURE} value?:real {INTERVAL} {OVER_SEEDS} improvement?:int regression?:int "
    "noise_floor?:real p_calibrated?:real",
    path_columns="model dataset estimator",
)
Intervals = Annotated[pd.DataFrame, INTERVALS]

CLAIMS = Table.parse(
    "claims from make_claims",
    f"{CELL} asks! metric! value?:real {INTERVAL} simultaneous_lower?:real "
    "simultaneous_upper?:real n_compared:int n_seeds:int halvings:int improvement?:int "
    "regression?:int other_improvement?:int other_regression?:int left_out:int repeated:int "
    "flipped:int alike?:real alike_between?:real by_chance?:real basis word lacking",
    path_columns="model dataset",
)
Claims = Annotated[pd.DataFrame, CLAIMS]

# Claims about confidences that have no information about the change
PLACEBOS = Table.parse(
    "placebos from make_claims",
    "model! dataset! train_dataset! estimator! placebo! earned:real",
    path_columns="model dataset",
)
Placebos = Annotated[pd.DataFrame, PLACEBOS]

# Holm's correction covers all pairs of a model, or all pairs of two models.
STATES = Table.parse(
    "states from compare_study",
    "model! other_model! dataset! earlier! later! estimator! metric! seed! "
    f"earlier_value?:real later_value?:real difference?:real {INTERVAL} p_value?:real "
    "p_holm?:real",
    path_columns="dataset",
)
States = Annotated[pd.DataFrame, STATES]

TRENDS = Table.parse(
    "trends from compare_study",
    f"model! dataset! estimator! metric! seed! n_checkpoints:int slope?:real {INTERVAL} "
    "p_value?:real",
    path_columns="dataset",
)
Trends = Annotated[pd.DataFrame, TRENDS]

# A threshold selected on the earlier checkpoint and checked on the later one, on the questions
# with two answers
AT_THRESHOLD = (
    "model! dataset! earlier! later! train_dataset! estimator! seed!:int target!:real"
)
THRESHOLDS = Table.parse(
    "thresholds from compare_study",
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

# The verdict on the first and the last compared checkpoint, a row per question
FINDINGS = Table.parse(
    "findings from make_findings",
    "model! dataset! earlier! later! slice! train_dataset! estimator! question! baseline:flag "
    "mark word value?:real lower?:real upper?:real basis next evidence",
    path_columns="model dataset",
)
Findings = Annotated[pd.DataFrame, FINDINGS]

# Selective prediction on all questions of a checkpoint
SELECTIVE = Table.parse(
    "selective from compare_study",
    "model! dataset! checkpoint! train_dataset! estimator! seed!:int metric! value?:real",
)
Selective = Annotated[pd.DataFrame, SELECTIVE]

# Thresholds that sheets of labels certify, by the size of a sheet
LABEL_CURVE = Table.parse(
    "label_curve from persistcal label-curve",
    "n_labels!:int n_sheets:int target:real threshold?:real precision?:real "
    "coverage?:real certified:real below_target:real",
)

# Thresholds that the labels of one sheet certify, at each look
LOOKS = Table.parse(
    "looks from persistcal threshold --labels",
    "model! dataset! checkpoint! estimator! drawn_from! n_labels!:int planned:flag level:real "
    "n_correct:int target!:real delta!:real error_so_far:real n_answers:int threshold?:real "
    "coverage?:real",
)

THRESHOLD_CELLS = Table.parse(
    "threshold_cells from compare_study",
    f"{AT_THRESHOLD} answered! earlier_correct!:flag later_correct!:flag n_questions:int",
)
ThresholdCells = Annotated[pd.DataFrame, THRESHOLD_CELLS]

# Questions that both checkpoints answer above the threshold and only the earlier correctly
CONFIDENT_REGRESSIONS = Table.parse(
    "confident_regressions from compare_study",
    f"{AT_THRESHOLD} question_id! earlier_confidence:real later_confidence:real "
    "earlier_answer? later_answer?",
)
ConfidentRegressions = Annotated[pd.DataFrame, CONFIDENT_REGRESSIONS]

ACCURACIES = Table.parse(
    "accuracies from compute_accuracies",
    "model! checkpoint! dataset! split accuracy:real n:int",
)
Accuracies = Annotated[pd.DataFrame, ACCURACIES]

PAPER_COMPARISON = Table.parse(
    "paper_comparison from compare_with_paper",
    f"table! {CELL} {MEASURE} ours?:real paper:real difference?:real lower?:real "
    "upper?:real inside?:flag bold?:flag paper_bold:flag underline?:flag "
    "paper_underline:flag settings",
)
PaperComparison = Annotated[pd.DataFrame, PAPER_COMPARISON]

PAPER_NUMBERS = Table.parse(
    "paper_numbers from compare_with_paper",
    "quantity! model! dataset! item! ours?:real paper:real difference?:real same?:flag",
)
PaperNumbers = Annotated[pd.DataFrame, PAPER_NUMBERS]

# The checkpoint's weights score its own answers; values are means over seeds.
TRANSFER = Table.parse(
    "transfer from measure_transfer",
    "model! dataset! recipe! trained_on! checkpoint! auc?:real n:int",
)
Transfer = Annotated[pd.DataFrame, TRANSFER]

VARIANCES = Table.parse(
    "variances from measure_variance",
    f"{CHECKPOINT_FILE} question_id! layer!:int variance:real",
)
Variances = Annotated[pd.DataFrame, VARIANCES]

CORRELATIONS = Table.parse(
    "correlations from correlate_variance",
    "model! dataset! layer!:int mean_rho?:real median_rho?:real n:int",
)
Correlations = Annotated[pd.DataFrame, CORRELATIONS]

CONFOUNDS = Table.parse(
    "confounds from measure_confounds",
    f"model! dataset! attribute! n_groups:int delta0_balanced?:real {INTERVAL} "
    "contrast_auc?:real full_auc?:real",
)
Confounds = Annotated[pd.DataFrame, CONFOUNDS]

# The value, conditioned by odds, can be undefined, for example without regressions.
PAIRS = Table.parse(
    "pairs from compare_study",
    f"{CELL} earlier! later! distance:int size:int improvement:int regression:int kept:flag "
    "metric! value?:real",
)
Pairs = Annotated[pd.DataFrame, PAIRS]

# Values are conditioned by odds.
CHANGES = Table.parse(
    "changes from compare_study",
    "model! dataset! change! train_dataset! estimator! n_pairs:int questions:int "
    "improvement:int regression:int lost_before?:real lost_after?:real metric! value?:real "
    f"{INTERVAL} {OVER_SEEDS} control control_model beyond_control?:real "
    "beyond_lower_2_5pct?:real beyond_upper_97_5pct?:real of_knowledge?:real "
    "of_knowledge_lower_2_5pct?:real of_knowledge_upper_97_5pct?:real crossed?:real "
    "crossed_lower_2_5pct?:real crossed_upper_97_5pct?:real word basis",
)
Changes = Annotated[pd.DataFrame, CHANGES]

MIN_CONTRAST = Table.parse(
    "min_contrast from compare_study",
    f"{CELL} metric! min_contrast!:int improvement:int regression:int kept pairs "
    "value?:real chosen:flag",
)
MinContrast = Annotated[pd.DataFrame, MIN_CONTRAST]

# Values are conditioned by odds.
SUBSETS = Table.parse(
    "subsets from measure_subsets",
    "model@ dataset@ by! group! n_answers:int accuracy:real n_contrast:int improvement:int "
    "regression:int flips?:real train_dataset! estimator! scope! metric! value?:real",
)
Subsets = Annotated[pd.DataFrame, SUBSETS]

AGREEMENTS = Table.parse(
    "agreements from measure_agreement",
    "model! dataset! first! second! category! known:int gone_first:int gone_second:int "
    "gone_both:int kappa?:real",
)
Agreements = Annotated[pd.DataFrame, AGREEMENTS]

# On the questions in a kept contrast set
HEADROOM = Table.parse(
    "headroom from measure_headroom",
    f"model! dataset! headroom?:real {INTERVAL} error_rate?:real n_answered:int n:int",
)
Headroom = Annotated[pd.DataFrame, HEADROOM]

WEIGHT_SIMILARITIES = Table.parse(
    "weight_similarities from compare_weights",
    "model! earlier! later! cosine:real n_weights:int",
)
WeightSimilarities = Annotated[pd.DataFrame, WEIGHT_SIMILARITIES]

AUDIT_AGREEMENTS = Table.parse(
    "audit_agreements from summarise_audit",
    "group! measure! count:int n:int share?:real lower?:real upper?:real kappa?:real",
)
AuditAgreements = Annotated[pd.DataFrame, AUDIT_AGREEMENTS]

CORRECTIONS = Table.parse(
    "corrections from correct_results",
    "model! dataset! earlier! later! train_dataset! estimator! metric! judged?:real "
    f"corrected?:real {INTERVAL} n_questions:int n_audited:int",
)
Corrections = Annotated[pd.DataFrame, CORRECTIONS]

MISSING = Table.parse(
    "missing from import_release", "model! dataset! estimator! checkpoint! path!"
)
Missing = Annotated[pd.DataFrame, MISSING]
