"""Results made elsewhere: answers, predictions, logs, the authors' release.

Modules
-------
answer_checks: checks of imported answers that span several rows
answer_files: read a file of answers or scored options, in any of the known formats
answers: imported answers, checked row by row, as tables
inspect_logs: logs of Inspect (``.eval``), read by Inspect itself
lm_eval_logs: sample logs of lm-evaluation-harness (``samples_*.jsonl``)
olmes_logs: predictions of OLMES and olmo-eval (``*-predictions.jsonl``)
options: imported scored options, checked row by row, as tables
predictions: imported predictions, checked row by row
release_files: read the authors' archives without running their content
release_tables: the authors' records as this project's tables
"""
