"""What was made elsewhere: answers or predictions of one's own, or the authors' release.

Modules
-------
answer_checks: what the rows of answers that were generated elsewhere must agree on
answers: what predictions that were made elsewhere say of the answers: whether they are
    correct
inspect_logs: logs of Inspect (``.eval``), read by Inspect itself where it is installed
lm_eval_logs: the sample logs of lm-evaluation-harness (``samples_*.jsonl``), as answers of
    one's own
own_answers: answers that were generated elsewhere: one row each, as the tables that a study
    reads
own_predictions: read a table of somebody's own predictions in batches, and say which rows
    are wrong
release/: the authors' released results, read so that nothing in them can run
"""
