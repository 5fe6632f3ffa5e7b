"""States that are made: a checkpoint trained further on some questions, or without them.

Modules
-------
documents: documents of questions, and how probable their answers are to a model
tuning: train a checkpoint further, or let it unlearn, with all its weights or with an adapter
"""
