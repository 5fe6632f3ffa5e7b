"""The HTML page with the results of a study and all answers.

Modules
-------
charts: the data of the page's charts and explorer of questions
compose: the page as one self-contained HTML file, and the summary
contents: the contents of the page, gathered from the study's tables, as arrays
overview: the page's texts about a study
sentences: sentences that compare estimators, and about the best ones after an update
tables: the study's tables, for the page and the summary
verdict: the verdict on an update: a record for the page, lines for the terminal, JSON
"""
