"""The functions for notebooks, and the command `persistcal`.

`persistcal` itself has the names of the functions. No script of the workflow imports this
package, so an edit here reruns nothing.

Modules
-------
checkpoints: checkpoints in memory: their answers, their confidence, and adapters for them
columns: columns of a user's file by the names of this project
command: the command `persistcal`: options, help and exit codes
display: the result of a comparison: sentences, tables, figures and the page
evaluate: evaluate predictions: metrics, bootstrap, tests and states; plan an evaluation
files: users' files as tables for an evaluation
inputs: settings and tables of an evaluation, from the predictions of a notebook
rating: answers of files, grouped, labelled and rated, or the options of multiple choice
thresholds: thresholds selected on one checkpoint, checked or certified on a later one
versions: the files of each version, and names of checkpoints
"""
