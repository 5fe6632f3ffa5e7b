"""Functions for notebooks, and the command `persistcal`.

`import persistcal` offers the functions. No script of the workflow imports this package, so the
workflow reruns nothing after an edit here.

Modules
-------
checkpoints: load a checkpoint, answer with it, rate its answers, train an adapter
command: read the command line, print help, end with an exit code
display: show a comparison as sentences, tables, figures and a page
gate: the policy of a release gate, and its rulings as files
locks: write thresholds into a file, and check later versions by it
evaluate: compute metrics, intervals and tests; plan a study
thresholds: select a threshold on one version, check or certify it on a later one
"""
