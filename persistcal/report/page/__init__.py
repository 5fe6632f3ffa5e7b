"""One page that shows a study: what it says, and every answer behind it.

Modules
-------
charts: the data of the page's charts: confidences of each part, and the study's analyses
compose: the page and the summary of a study, from its contents alone: one HTML file that
    needs nothing else and may reach nothing else
contents: everything that the page shows of a study, gathered from its tables, as arrays
explorer: the data behind the page's explorer: every question, answer and confidence, packed
facts: texts about how a study was made, for the foot of the page
overview: the page's texts about a study
sentences: sentences about a study, which are true of its numbers
tables: the study's tables as the page and its summary show them
update: sentences on an update: what changed, and whether confidence followed
"""
