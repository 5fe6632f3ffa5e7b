"""Predictions from elsewhere: a table of one's own, or the authors' release.

Modules
-------
answers: what predictions that were made elsewhere say of the answers: whether they are
    correct
own_predictions: read a table of somebody's own predictions in batches, and say which rows
    are wrong
release/: the authors' released results, read so that nothing in them can run
"""
