"""Users' files and frames as the tables of an evaluation: predictions, answers, scored options.

Modules
-------
answer_files: read a file of answers or scored options, in any of the known formats
answers: imported answers, checked row by row and across rows, as tables
columns: columns of a user's file by the names of this project
harness_logs: logs of lm-evaluation-harness, OLMES and olmo-eval in JSON lines
inputs: settings and tables of an evaluation, from the predictions of a notebook
inspect_logs: logs of Inspect, read by Inspect itself
options: imported scored options, checked row by row, as tables
predictions: imported predictions, checked row by row
rating: answers of files, grouped, labelled and rated, or the options of multiple choice
reading: the options for reading files; the command has the same options
rules: rules of values, of rows and of second asks
scales: confidences on other scales, in words, as uncertainty, or missing
study: users' files as tables for an evaluation
versions: the files of each version, names of checkpoints, and slices by a column
"""
