"""One HTML page with the results of a study and all answers.

Modules
-------
charts: the data of the page's charts: confidences per model and dataset, and analyses
compose: the page as one self-contained HTML file, and the summary
contents: the contents of the page, gathered from the study's tables, as arrays
explorer: the data behind the page's explorer: every question, answer and confidence, packed
facts: texts about how a study was made, for the foot of the page
overview: the page's texts about a study
sentences: sentences about estimators that the study's numbers support
tables: the study's tables, for the page and the summary
update: sentences on an update: what changed, and whether confidence followed
"""
