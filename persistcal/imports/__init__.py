"""Results made elsewhere: answers, predictions, logs, the authors' release.

Modules
-------
answer_files: read a file of answers or scored options, in any of the known formats
answers: imported answers, checked row by row and across rows, as tables
asks: second asks of the same questions, and groups of questions, checked
harness_logs: logs of lm-evaluation-harness, OLMES and olmo-eval in JSON lines
inspect_logs: logs of Inspect, read by Inspect itself
options: imported scored options, checked row by row, as tables
predictions: imported predictions, checked row by row
release_files: read the authors' archives without running their content
release_tables: the authors' records as this project's tables
scales: confidences on other scales, in words, as uncertainty, or missing
"""
