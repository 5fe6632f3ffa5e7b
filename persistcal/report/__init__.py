"""Tables and figures, and the study beside the paper.

Modules
-------
analysis_figures: figures of the analyses: transfer, the headroom of a verifier, distance of
    checkpoints
analysis_tables: tables of the analyses, and of metrics on parts of the questions, as LaTeX
change_views: table and figure of the named kinds of change
drawing: what all figures share: style, looks of estimators, panels, markers, legends
figures: figures of a study: accuracy, and what many estimators score
grid: the cells of a table of results, which of them are best, and the grid of them
latex: tables as LaTeX
layout: what a table of results shows, and which estimators it compares
page/: one page that shows a study: what it says, and every answer behind it
paper: the paper's printed numbers: what each is called here, and how a study compares
state_views: tables and figure of states against each other, and of an audit's corrections
tables: tables that compare no estimators: a function from rows to LaTeX and a CSV's rows
threshold_views: thresholds in sentences, for the terminal, the page and notebooks
"""
