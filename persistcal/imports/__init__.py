"""Users' files and what was made elsewhere: answers, predictions, the authors' release.

Modules
-------
answer_checks: check what the rows of answers that were generated elsewhere must agree on
answer_files: read a file of answers or of scored options that came from elsewhere
inspect_logs: logs of Inspect (``.eval``), read by Inspect itself where it is installed
lm_eval_logs: sample logs of lm-evaluation-harness (``samples_*.jsonl``) as answers, or scored
    options
olmes_logs: predictions of OLMES and olmo-eval (``*-predictions.jsonl``), DataDecide's among
    them
own_answers: answers that were generated elsewhere: their rows, each checked for itself, as
    tables
own_options: scored options that came from elsewhere: rows, each checked for itself, and their
    tables
own_predictions: collect a user's predictions batch by batch, and refuse rows that are wrong, or
    disagree
release/: the authors' released results, read so that nothing in them can run
user_files: read users' files: rows of JSONL, CSV or parquet, as they are or compressed with
    gzip
user_tables: checks that users' tables share: names of columns, texts, and errors that show
    the rows
"""
