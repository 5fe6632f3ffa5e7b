"""One page that shows a study: what it says, and every answer behind it.

Modules
-------
analyses: the analyses that a study may have, as the page draws them
calibration: what the page draws of an estimator's confidences: reliability, histograms,
    pairs
compose: gather what the page shows of a study, from frames alone
explorer: the data behind the page's explorer: every question, answer and confidence, packed
facts: what the foot of the page says of how a study was made
overview: what the page says of a study in words
parts: what the page knows of one model and dataset, as arrays
render: the page as one HTML file that needs nothing else and may reach nothing else
sentences: what a study says, in sentences that are true of its numbers
states: states against each other, in sentences
study: all that the page is made of
summary: what the page says, in a few lines of plain text for the end of a run
tables: the study's tables as the page shows them
"""
