"""What a notebook needs: tables of predictions, or models, in; tables out.

No script of the workflow imports this room, so that an edit here leaves the digests of the code
behind results as they are. For the same reason nothing of it is in `persistcal/__init__.py`,
which runs with every module.

Modules
-------
checkpoints: checkpoints in memory: their answers, their confidence, and adapters for them
display: the table and the figure of a comparison, as a notebook shows them
inputs: what a notebook hands over, as the rooms take it, or one sentence that says what is
    wrong
predictions: tables of predictions in, tables of metrics and tests out
"""
