"""Tables, figures and the page of a study, and a comparison with the paper.

Modules
-------
analysis_figures: figures of the analyses: transfer, the headroom of a verifier, distance of
    checkpoints
analysis_tables: tables of the analyses, and of metrics on groups of questions, as LaTeX
change_views: table and figure of the named kinds of change
drawing: style, looks of estimators, panels, markers and legends of all figures
figures: figures of a study: accuracy, and metrics of many estimators
grid: the cells of a table of results, their marks, and their layout
latex: tables as LaTeX
layout: the columns of a table of results, and the estimators that it compares
page/: one HTML page with the results of a study and all answers
paper: the paper's printed numbers under this project's names, compared with a study
registry: decorators that register figures and tables, and how the Snakefile reads them
state_views: tables and figure of comparisons of states, and of an audit's corrections
tables: tables that compare no estimators: a function from rows to LaTeX and a CSV's rows
threshold_views: thresholds in sentences, for the terminal, the page and notebooks
"""
