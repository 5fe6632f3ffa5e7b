"""Tables, figures and the page of a study.

Modules
-------
analysis_tables: tables of the analyses, groups of questions, changes and thresholds, as LaTeX
catalogue: all figures and plain tables, with captions and settings; the Snakefile imports it
curves: curves of confidence and thresholds, before and after an update
drawing: style, looks of estimators, panels, markers and legends of all figures
figures: figures of metrics and accuracies over estimators, checkpoints and changes
grid: the cells of a table of results, their marks, and their layout
latex: tables as LaTeX
layout: the columns of a table of results, and the estimators that it compares
page/: the HTML page with the results of a study and all answers
phrases: words and numbers of findings, for the terminal, the page and notebooks
tables: tables that compare no estimators: a function from rows to LaTeX and a CSV's rows
update_figures: figures of confidence and thresholds before and after an update
"""
