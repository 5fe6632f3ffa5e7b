"""The functions for notebooks: tables of predictions, or models, in; tables out.

`persistcal` itself has their names. No script of the workflow imports this room, so that an
edit here changes no result's code.

Modules
-------
checkpoints: checkpoints in memory: their answers, their confidence, and adapters for them
display: the table and the figure of a comparison, as a notebook shows them
inputs: predictions and settings as the rooms take them, or one sentence that says what is wrong
planning: which differences a study could find, before there is one
predictions: tables of predictions in, tables of metrics, tests and differences of states out
thresholds: thresholds selected on one checkpoint and checked on a later one
"""
