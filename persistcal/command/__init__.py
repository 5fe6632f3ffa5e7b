"""The command `persistcal`: files of answers or predictions in, the tables of a study out.

It calls the functions that the scripts of the workflow call, in their order, so that the
numbers are the workflow's. No script imports this room, so that an edit here reruns nothing.

Modules
-------
app: the commands, their options and help, and how they end
files: users' files as the predictions of a study, and what the command took for granted
plan: the differences that a study could find, a line each
results: metrics, tests and page of predictions, step by step
thresholds: tables of thresholds, a sheet of answers to label, and what it certifies
"""
