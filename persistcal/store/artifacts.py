"""Define the tables that rules pass to each other, and their names in annotations.

`Table.parse` explains how columns are described. `persistcal.store.jobs` reads and writes a
frame as the table in its annotation. `make outputs` writes docs/outputs.md from this file.
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
# Meanings that two columns of a table share
FEWEST = "gained and lost questions of the pair with the fewest; missing if not both are needed"
CORRELATED = (
    "mean and median over questions of Spearman's correlation with the checkpoints' order"
)

# Columns that mean the same in several tables; each table explains its other columns
SHARED = {
    "accuracy": "share of correct answers",
    "answer": "text of the answer",
    "any_of": "whether one of several references suffices",
    "category": "category of the question; relation of a fact",
    "checkpoint": "key of `models.*.checkpoints`",
    "cluster": "rank of the candidate; 0 is the most probable",
    "conditioning": "odds, fitted or cross_fitted",
    "confidence": "estimated probability that the answer is correct",
    "correct": "whether the answer is correct",
    "dataset": "key of `datasets`",
    "earlier": "earlier checkpoint of a pair",
    "estimator": (
        "key of `estimators`, or a name in a user's file; empty for numbers about answers"
    ),
    "excluded": "whether training and metrics leave the question out",
    "gold": "number of the right option, from 0",
    "group": "name shared by questions about one fact or document; empty for none",
    "improvement": "gained questions, which only the later checkpoint answers correctly",
    "index": "position, from 0",
    "kappa": "Cohen's κ, in [−1, 1]",
    "kept": "whether the set has `min_contrast` questions",
    "label": "correct, incorrect or not_attempted",
    "later": "later checkpoint of the pair",
    "layer": "number of the layer, from 1",
    "lower_2_5pct": "ends of the 95 % interval over questions",
    "metric": "name of the metric",
    "model": "key of `models`",
    "n": "number of questions",
    "n_questions": "number of questions",
    "n_seeds": "number of seeds (the fewer of two estimators); 0 without training",
    "options": "options of multiple choice",
    "p_holm": "`p_value` after Holm's correction",
    "p_value": "two-sided p-value",
    "pairs": 'number of pairs that define the metric, such as "1 of 3"',
    "probability": "summed weight of its beams or samples",
    "question": "text of the question",
    "question_id": "the question",
    "recipe": "key of `recipes`",
    "references": "accepted answers",
    "regression": "lost questions, which only the earlier checkpoint answers correctly",
    "scope": "contrast (contrast sets) or full (all questions)",
    "seed": "seed of the training (0 without training), or `mean`; empty for accuracy",
    "seeds_lower_2_5pct": "ends of the 95 % interval over seeds and questions",
    "seeds_upper_97_5pct": "ends of the 95 % interval over seeds and questions",
    "size": "questions in the contrast set",
    "split": (
        "train, test, few_shot or unused; of answers also half1 and half2 (halves of the "
        "samples of test) and again (test, asked after other examples)"
    ),
    "target": "required precision above the threshold, in (0, 1)",
    "text": "generated text",
    "train_dataset": "dataset of the training; by default `dataset`",
    "trained_on": "checkpoints of the training",
    "truths": "JSON of other references, by checkpoint",
    "upper_97_5pct": "ends of the 95 % interval over questions",
    "value": (
        "mean over seeds unless `seed` is a number; Δ in [−1, 1], PRR at most 1, "
        "others in [0, 1]"
    ),
}

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
    relation="such as the country of a city",
    answer="right answer",
    group="facts that the drift of a pre-training weights together",
    weight="weight of the fact in the pre-training, above 0",
)
Facts = Annotated[pd.DataFrame, FACTS]

# Beams, samples or options. A user's own answers can lack all numbers.
BEAMS = Table.parse(
    "beams from generate_beams",
    f"{SPLIT_FILE} question_id! beam!:int text logprob?:real n_tokens?:int "
    "entropy?:real self_certainty?:real margin?:real min_logprob?:real unconditional?:real "
    "stated?",
    beam="number of the beam or sample, from 0",
    logprob="summed log-probability of the tokens",
    n_tokens="number of tokens, with the last one",
    entropy="mean entropy of the tokens",
    self_certainty="mean divergence of the uniform from the tokens' distributions",
    margin="mean difference between the two most probable tokens",
    min_logprob="least log-probability of a token",
    unconditional="log-probability of an option without the question",
    stated="JSON of a user's confidences, by estimator",
)
Beams = Annotated[pd.DataFrame, BEAMS]

CLUSTERS = Table.parse(
    "clusters from cluster_answers",
    f"{SPLIT_FILE} question_id! cluster!:int answer probability:real members:texts",
    members="distinct texts of the candidate, best first",
)
Clusters = Annotated[pd.DataFrame, CLUSTERS]

ENTAILMENTS = Table.parse(
    "entailments from cluster_answers",
    "question! one! other! entailed:flag",
    one="answer that may entail `other`",
    other="answer that may be entailed",
    entailed="whether `one` entails `other`",
)

LABELS = Table.parse(
    "labels from judge_answers",
    f"{SPLIT_FILE} question_id! cluster!:int label source",
    source="origin of the label",
)
Labels = Annotated[pd.DataFrame, LABELS]

# Labels that users give with their answers
GIVEN_LABELS = Table.parse(
    "given_labels from import_answers",
    "dataset@ question_id! answer! label",
    answer="the answer without case and full stops",
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
    step="optimiser step, from 1",
    loss="binary cross-entropy",
    lr="learning rate",
    seconds="duration of the step",
)
Training = Annotated[pd.DataFrame, TRAINING]

SCORES = Table.parse(
    "scores from score_answers",
    f"{CHECKPOINT_FILE} answers@ answers_of! recipe! trained_on! train_dataset! seed!:int "
    "question_id! confidence:real",
    path_columns="model checkpoint dataset recipe answers",
    answers="kind of scored answers, such as `transfer`",
    answers_of="checkpoint that gave the answers",
)
Scores = Annotated[pd.DataFrame, SCORES]

VERIFIED = Table.parse(
    "verified from score_with_verifier",
    "verifier@ model@ dataset@ checkpoint! question_id! confidence:real",
    verifier="key of `verifiers`",
    confidence="the verifier's probability of yes",
)
Verified = Annotated[pd.DataFrame, VERIFIED]

# Replies of a checkpoint to an estimator's questions about the checkpoint's answers
REPLIES = Table.parse(
    "replies from ask_checkpoint or ask_server",
    f"{SPLIT_FILE} estimator@ question_id! sample!:int text",
    sample="number of the reply, from 0",
)
Replies = Annotated[pd.DataFrame, REPLIES]

UNSAID = Table.parse(
    "unsaid from read_confidences",
    "model@ dataset@ estimator@ checkpoint! answers:int unsaid:int",
    answers="predictions on the test split",
    unsaid="answers without a readable confidence",
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
    ask=(
        "0 for the answers of all other results; 1 to 89 for further asks, 90 for one after "
        "other examples, 101 and 102 for halves of samples, 201 and 202 for other halves"
    ),
)
Predictions = Annotated[pd.DataFrame, PREDICTIONS]

SAME_ANSWERS = "questions with two equal answers; missing for predictions"
COUNTED = "earlier! later! size:int improvement:int regression:int kept:flag same_answers?:int"
CONTRAST_SETS = Table.parse(
    "contrast_sets from collect_results",
    f"model! dataset! {COUNTED}",
    same_answers=SAME_ANSWERS,
)
ContrastSets = Annotated[pd.DataFrame, CONTRAST_SETS]

# The contrast sets that all evaluations of a model and dataset read
CONTRAST_MEMBERS = Table.parse(
    "contrast_members from list_contrast_sets",
    f"model@ dataset@ {COUNTED} gained:texts lost:texts stayed_wrong:texts stayed_right:texts",
    same_answers=SAME_ANSWERS,
    gained="questions that only the later checkpoint answers correctly, in order",
    lost="questions that only the earlier checkpoint answers correctly",
    stayed_wrong="questions that neither answers correctly",
    stayed_right="questions that both answer correctly",
)
ContrastMembers = Annotated[pd.DataFrame, CONTRAST_MEMBERS]

CONTRAST_QUESTIONS = Table.parse(
    "contrast_questions from list_contrast_sets",
    "model@ dataset@ earlier! later! question_id! improvement:flag kept:flag earlier_answer? "
    "later_answer?",
    improvement="whether only the later checkpoint is correct, else only the earlier one is",
    earlier_answer="text of this answer; missing for predictions",
    later_answer="text of this answer; missing for predictions",
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
    block="block of rows that are compared",
    best="best estimator of the block",
    other="estimator that is compared with the best",
    difference="advantage of the best estimator, in units of the metric",
    lower_5pct="5 % quantile of the difference, for the paper's marks",
    significant="whether `lower_5pct` is above 0; missing without a test",
    simultaneous_lower="ends of the simultaneous interval for all pairs of the block",
    simultaneous_upper="ends of the simultaneous interval for all pairs of the block",
    p_adjusted="two-sided p-value for all pairs of the block",
    in_best_set="whether no estimator of the block is above `other`; missing without a test",
    seeds_p_value="two-sided p-value over seeds and questions",
)
Significance = Annotated[pd.DataFrame, SIGNIFICANCE]

REPLICATES = Table.parse(
    "replicates from evaluate_estimator",
    f"model@ dataset@ train_dataset! estimator! {MEASURE} value?:real replicates:reals "
    "claims:reals probes:reals improvement?:int regression?:int drawn seeds:ints by_seed:reals "
    "noise?:real n_effective:real",
    path_columns="model dataset estimator",
    replicates="values on the paper's class-stratified replicates; empty without its marks",
    claims="values on the replicates of intervals and tests; missing for a metric without them",
    probes="values under random weights of questions, equal for estimators that always agree",
    improvement=FEWEST,
    regression=FEWEST,
    drawn="digest of the draws; equal for paired replicates",
    seeds="seeds of the estimator",
    by_seed="value for each of `seeds`",
    noise="variance between seeds that the questions cause",
    n_effective="number of questions if all weighed as much as the heaviest",
)
Replicates = Annotated[pd.DataFrame, REPLICATES]

# SmoothECE has no interval. The noise floor is the mean SmoothECE of labels that are drawn from
# the confidences.
INTERVALS = Table.parse(
    "intervals from evaluate_estimator",
    f"{CELL} {MEASURE} value?:real {INTERVAL} {OVER_SEEDS} improvement?:int regression?:int "
    "noise_floor?:real p_calibrated?:real",
    path_columns="model dataset estimator",
    improvement=FEWEST,
    regression=FEWEST,
    noise_floor="SmoothECE of labels drawn from the confidences; missing for other metrics",
    p_calibrated="p-value of the test of calibration; missing for other metrics",
)
Intervals = Annotated[pd.DataFrame, INTERVALS]

CLAIMS = Table.parse(
    "claims from make_claims",
    f"{CELL} asks! metric! value?:real {INTERVAL} simultaneous_lower?:real "
    "simultaneous_upper?:real n_compared:int n_seeds:int halvings:int improvement?:int "
    "regression?:int other_improvement?:int other_regression?:int left_out:int repeated:int "
    "flipped:int alike?:real alike_between?:real by_chance?:real basis word lacking",
    path_columns="model dataset",
    asks="one ask, or cross: two asks with exchanged roles",
    value="mean over seeds",
    lower_2_5pct="ends of the 95 % interval over questions, and over seeds if there are any",
    upper_97_5pct="ends of the 95 % interval over questions, and over seeds if there are any",
    simultaneous_lower="ends of the interval for all compared estimators, on which words rest",
    simultaneous_upper="ends of the interval for all compared estimators, on which words rest",
    n_compared="compared estimators",
    n_seeds="seeds of the training; 0 without training",
    halvings="pairs of asks over which the metric is averaged, such as halvings of samples",
    improvement="gained questions of all pairs; for cross those of the first ask",
    regression="lost questions of all pairs; for cross those of the first ask",
    other_improvement="gained questions of the second ask",
    other_regression="lost questions of the second ask",
    left_out="answers without a label in one of the asks",
    repeated="answers that a version gave in two asks of a user",
    flipped="those of them with another label",
    alike="share of them with the same label and confidence; missing for an ask of a part",
    alike_between="the same share between asks of two versions",
    by_chance="what chance flips alone could reach, next to an ask of a part",
    basis=(
        "what the word rests on: cross, other examples, control, one ask, declared, samples or "
        "copies; empty elsewhere"
    ),
    word="claim about the estimator; empty in rows on which it does not rest",
    lacking="first test that failed, or the placebo that earns the word, and withholds it",
)
Claims = Annotated[pd.DataFrame, CLAIMS]

# Claims about confidences that have no information about the change
PLACEBOS = Table.parse(
    "placebos from make_claims",
    "model! dataset! train_dataset! estimator! placebo! earned:real",
    path_columns="model dataset",
    placebo=(
        "mean rank: the later confidence is the question's mean rank; same scale: it is the "
        "earlier one on the later one's scale; later shuffled, earlier shuffled: over questions"
    ),
    earned="share of the trials in which the word is earned: of 1, or of 20 shuffles",
)
Placebos = Annotated[pd.DataFrame, PLACEBOS]

# Holm's correction covers all pairs of a model, or all pairs of two models.
STATES = Table.parse(
    "states from compare_study",
    "model! other_model! dataset! earlier! later! estimator! metric! seed! "
    f"earlier_value?:real later_value?:real difference?:real {INTERVAL} p_value?:real "
    "p_holm?:real",
    path_columns="dataset",
    other_model="model of the later checkpoint, if it is another one",
    metric="accuracy, auc, brier or smece",
    earlier_value="value at this checkpoint",
    later_value="value at this checkpoint",
    difference="later minus earlier value",
)
States = Annotated[pd.DataFrame, STATES]

TRENDS = Table.parse(
    "trends from compare_study",
    f"model! dataset! estimator! metric! seed! n_checkpoints:int slope?:real {INTERVAL} "
    "p_value?:real",
    path_columns="dataset",
    metric="accuracy, auc, brier or smece",
    n_checkpoints="number of checkpoints",
    slope="change of the value per checkpoint",
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
    delta="allowed probability of an error, in (0, 1)",
    threshold="lowest confidence of an answer that is given",
    verdict="kept, broken or undecided; empty without a threshold",
    labels_to_decide=(
        "labels above the threshold that decide a verdict in 80 %; infinite if none suffice"
    ),
    least_abstention="smallest share of abstentions that meets the target",
    confident_regressions="lost questions above the threshold at both checkpoints",
    earlier_answered="answers above the threshold",
    earlier_correct="correct answers among them",
    earlier_precision="share of correct answers among them",
    earlier_coverage="share of answers above the threshold",
    later_answered="answers above the threshold",
    later_correct="correct answers among them",
    later_precision="share of correct answers among them",
    later_precision_lower_2_5pct="ends of their 95 % intervals",
    later_precision_upper_97_5pct="ends of their 95 % intervals",
    later_coverage="share of answers above the threshold",
    precision_change="later minus earlier value",
    precision_change_lower_2_5pct="ends of their 95 % intervals",
    precision_change_upper_97_5pct="ends of their 95 % intervals",
    coverage_change="later minus earlier value",
    coverage_change_lower_2_5pct="ends of their 95 % intervals",
    coverage_change_upper_97_5pct="ends of their 95 % intervals",
)
Thresholds = Annotated[pd.DataFrame, THRESHOLDS]

# The verdict on the first and the last compared checkpoint, a row per question
FINDINGS = Table.parse(
    "findings from make_findings",
    "model! dataset! earlier! later! slice! train_dataset! estimator! question! baseline:flag "
    "mark word value?:real lower?:real upper?:real basis next evidence",
    path_columns="model dataset",
    slice="column and value of the questions, such as topic=law, or empty for all questions",
    question="accuracy, following, calibration or threshold",
    baseline="whether the confidence is the same for all questions of a checkpoint",
    mark="yes, no, open (the data cannot tell) or none (nothing to test)",
    word="what is found",
    value=(
        "difference of accuracies, change AUC, mean confidence minus accuracy, or precision "
        "above the threshold"
    ),
    lower="ends of the interval on which the mark rests, or over seeds",
    upper="ends of the interval on which the mark rests, or over seeds",
    basis="what a word on following rests on: cross, other examples, one ask or samples",
    next="keep (the threshold), label (answers), ask twice, ask without copies, or empty",
    evidence="JSON of the other numbers in texts on this question",
)
Findings = Annotated[pd.DataFrame, FINDINGS]

# Selective prediction on all questions of a checkpoint
SELECTIVE = Table.parse(
    "selective from compare_study",
    "model! dataset! checkpoint! train_dataset! estimator! seed!:int metric! value?:real",
    metric="aurc, augrc or prr",
)
Selective = Annotated[pd.DataFrame, SELECTIVE]

# Thresholds that sheets of labels certify, by the size of a sheet
LABEL_CURVE = Table.parse(
    "label_curve from persistcal label-curve",
    "n_labels!:int n_sheets:int target:real threshold?:real precision?:real "
    "coverage?:real certified:real below_target:real",
    n_labels="answers of the later checkpoint that are labelled",
    n_sheets="sheets of this size that were drawn",
    threshold="median of the certified thresholds",
    precision="median precision of all answers at or above them",
    coverage="median share of questions that they answer",
    certified="share of the sheets that certify a threshold",
    below_target="share of the sheets that certify a threshold below the target",
)

# Thresholds that the labels of one sheet certify, at each look
LOOKS = Table.parse(
    "looks from persistcal threshold --labels",
    "model! dataset! checkpoint! estimator! drawn_from! n_labels!:int planned:flag level:real "
    "n_correct:int target!:real delta!:real error_so_far:real n_answers:int threshold?:real "
    "coverage?:real",
    drawn_from="digest of the answers and confidences of the sheet",
    n_labels="labelled answers, from the top of the sheet",
    planned="whether the look was planned when the sheet was drawn",
    level="error probability of this look",
    n_correct="labelled answers that are correct",
    delta="allowed probability of an error, in (0, 1)",
    error_so_far="error probability of all looks so far",
    n_answers="answers of the later checkpoint",
    threshold="certified threshold; empty without one",
    coverage="share of the answers at or above the threshold",
)

THRESHOLD_CELLS = Table.parse(
    "threshold_cells from compare_study",
    f"{AT_THRESHOLD} answered! earlier_correct!:flag later_correct!:flag n_questions:int",
    answered="which answers are above the threshold: both, earlier, later or neither",
    earlier_correct="whether this answer is correct",
    later_correct="whether this answer is correct",
)
ThresholdCells = Annotated[pd.DataFrame, THRESHOLD_CELLS]

# Questions that both checkpoints answer above the threshold and only the earlier correctly
CONFIDENT_REGRESSIONS = Table.parse(
    "confident_regressions from compare_study",
    f"{AT_THRESHOLD} question_id! earlier_confidence:real later_confidence:real "
    "earlier_answer? later_answer?",
    earlier_confidence="confidence in this answer",
    later_confidence="confidence in this answer",
    earlier_answer="text of this answer",
    later_answer="text of this answer",
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
    table="key of `tables`",
    ours="our value",
    paper="the paper's value",
    difference="our value minus the paper's",
    lower="ends of our 95 % interval",
    upper="ends of our 95 % interval",
    inside="whether the paper's value is in our interval",
    bold="whether the value is the best of the block",
    paper_bold="whether the value is the best of the block",
    underline="whether the value is not significantly worse than the best",
    paper_underline="whether the value is not significantly worse than the best",
    settings="settings of the study that differ from the paper's",
)
PaperComparison = Annotated[pd.DataFrame, PAPER_COMPARISON]

PAPER_NUMBERS = Table.parse(
    "paper_numbers from compare_with_paper",
    "quantity! model! dataset! item! ours?:real paper:real difference?:real same?:flag",
    quantity="what is printed, such as the size of a contrast set",
    item="pair of checkpoints, checkpoint or layer",
    ours="our value",
    paper="the paper's value",
    difference="our value minus the paper's",
    same="whether both agree to the last printed digit",
)
PaperNumbers = Annotated[pd.DataFrame, PAPER_NUMBERS]

# The checkpoint's weights score its own answers; values are means over seeds.
TRANSFER = Table.parse(
    "transfer from measure_transfer",
    "model! dataset! recipe! trained_on! checkpoint! auc?:real n:int",
    auc="AUC on all questions",
)
Transfer = Annotated[pd.DataFrame, TRANSFER]

VARIANCES = Table.parse(
    "variances from measure_variance",
    f"{CHECKPOINT_FILE} question_id! layer!:int variance:real",
    variance="variance over seeds, summed over hidden units",
)
Variances = Annotated[pd.DataFrame, VARIANCES]

CORRELATIONS = Table.parse(
    "correlations from correlate_variance",
    "model! dataset! layer!:int mean_rho?:real median_rho?:real n:int",
    mean_rho=CORRELATED,
    median_rho=CORRELATED,
)
Correlations = Annotated[pd.DataFrame, CORRELATIONS]

CONFOUNDS = Table.parse(
    "confounds from measure_confounds",
    f"model! dataset! attribute! n_groups:int delta0_balanced?:real {INTERVAL} "
    "contrast_auc?:real full_auc?:real",
    attribute="attribute of the question or answer",
    n_groups="distinct values of the attribute",
    delta0_balanced="Δ₀ᵇ, in [−1, 1]",
    contrast_auc="AUC on contrast sets",
    full_auc="AUC on all questions",
)
Confounds = Annotated[pd.DataFrame, CONFOUNDS]

# The value, conditioned by odds, can be undefined, for example without regressions.
PAIRS = Table.parse(
    "pairs from compare_study",
    f"{CELL} earlier! later! distance:int size:int improvement:int regression:int kept:flag "
    "metric! value?:real",
    distance="positions between the checkpoints, from 1",
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
    change="kind of change, a key of `study.pairs`",
    n_pairs="pairs of this kind",
    questions="questions in their contrast sets",
    lost_before=(
        "mean confidence in lost questions at the earlier checkpoint, whose answers are right"
    ),
    lost_after="the same at the later checkpoint, whose answers are wrong",
    control="kind of change that is the control",
    control_model="model of the control",
    beyond_control="numerator of Δ_K or AUC_K; 0 if knowledge does not count",
    beyond_lower_2_5pct="ends of its 95 % interval over seeds and questions",
    beyond_upper_97_5pct="ends of its 95 % interval over seeds and questions",
    of_knowledge="Δ_K or AUC_K: the metric without the control's share of chance flips",
    of_knowledge_lower_2_5pct="ends of its Fieller interval, never clipped",
    of_knowledge_upper_97_5pct="ends of its Fieller interval, never clipped",
    crossed="the cross-asked metric, if there are two asks",
    crossed_lower_2_5pct="ends of its 95 % interval over seeds and questions",
    crossed_upper_97_5pct="ends of its 95 % interval over seeds and questions",
    word="claim about the estimator; empty without a second ask and without a control",
    basis="what the claim rests on: cross, other examples or control; empty without a claim",
)
Changes = Annotated[pd.DataFrame, CHANGES]

MIN_CONTRAST = Table.parse(
    "min_contrast from compare_study",
    f"{CELL} metric! min_contrast!:int improvement:int regression:int kept pairs "
    "value?:real chosen:flag",
    min_contrast="smallest size of a kept contrast set",
    improvement="gained and lost questions of all kept pairs",
    regression="gained and lost questions of all kept pairs",
    kept="number of kept pairs",
    chosen="whether the study keeps the same pairs",
)
MinContrast = Annotated[pd.DataFrame, MIN_CONTRAST]

# Values are conditioned by odds.
SUBSETS = Table.parse(
    "subsets from measure_subsets",
    "model@ dataset@ by! group! n_answers:int accuracy:real n_contrast:int improvement:int "
    "regression:int flips?:real train_dataset! estimator! scope! metric! value?:real",
    by="kind of groups, such as margin or category",
    group="group of questions, such as a category",
    n_answers="answers in the group",
    n_contrast="contrast questions in the group, over all pairs",
    flips="share of contrast questions among those that both checkpoints answered",
)
Subsets = Annotated[pd.DataFrame, SUBSETS]

AGREEMENTS = Table.parse(
    "agreements from measure_agreement",
    "model! dataset! first! second! category! known:int gone_first:int gone_second:int "
    "gone_both:int kappa?:real",
    first="the two checkpoints",
    second="the two checkpoints",
    category="category of the questions; empty for all",
    known="questions that the reference checkpoint answers correctly",
    gone_first="known questions that this checkpoint loses",
    gone_second="known questions that this checkpoint loses",
    gone_both="known questions that both lose",
)
Agreements = Annotated[pd.DataFrame, AGREEMENTS]

# On the questions in a kept contrast set
HEADROOM = Table.parse(
    "headroom from measure_headroom",
    f"model! dataset! headroom?:real {INTERVAL} error_rate?:real n_answered:int n:int",
    headroom="contrast AUC of the oracle minus the verifier's",
    error_rate="share of wrong answers of the verifier's backbone",
    n_answered="questions that the verifier's backbone answers",
)
Headroom = Annotated[pd.DataFrame, HEADROOM]

WEIGHT_SIMILARITIES = Table.parse(
    "weight_similarities from compare_weights",
    "model! earlier! later! cosine:real n_weights:int",
    cosine="cosine of the weights as vectors",
    n_weights="number of compared weights",
)
WeightSimilarities = Annotated[pd.DataFrame, WEIGHT_SIMILARITIES]

AUDIT_AGREEMENTS = Table.parse(
    "audit_agreements from summarise_audit",
    "group! measure! count:int n:int share?:real lower?:real upper?:real kappa?:real",
    group="contrast, non_contrast or all",
    measure="counted property",
    count="answers with the property",
    n="number of labelled answers",
    share="count / n",
    lower="ends of the 95 % Wilson interval",
    upper="ends of the 95 % Wilson interval",
)
AuditAgreements = Annotated[pd.DataFrame, AUDIT_AGREEMENTS]

CORRECTIONS = Table.parse(
    "corrections from correct_results",
    "model! dataset! earlier! later! train_dataset! estimator! metric! judged?:real "
    f"corrected?:real {INTERVAL} n_questions:int n_audited:int",
    metric=(
        "accuracy_earlier, accuracy_later, contrast_size, improvement, regression "
        "or a contrast metric"
    ),
    judged="number by the judge's labels",
    corrected="number after correction by a person's labels",
    n_audited="questions that a person labelled",
)
Corrections = Annotated[pd.DataFrame, CORRECTIONS]

MISSING = Table.parse(
    "missing from import_release",
    "model! dataset! estimator! checkpoint! path!",
    path="missing file of the archive",
)
Missing = Annotated[pd.DataFrame, MISSING]
