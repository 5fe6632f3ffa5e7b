"""The functions for notebooks, and the command `persistcal`.

`persistcal` itself has the names of the functions. No script of the workflow imports this
package, so an edit here reruns nothing.

Modules
-------
checkpoints: checkpoints in memory: their answers, their confidence, and adapters for them
command: the command `persistcal`: options, help and exit codes
display: the result of a comparison: sentences, tables, figures and the page
gate: a release gate: its policy, and what it says on a comparison
locks: thresholds in a committed file, by which later versions are checked
evaluate: evaluate predictions: metrics, bootstrap, tests and states; plan an evaluation
thresholds: thresholds selected on one checkpoint, checked or certified on a later one
"""
