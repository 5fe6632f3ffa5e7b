"""Functions for notebooks, and the command `persistcal`.

`import persistcal` offers the functions. No script of the workflow imports this package, so the
workflow reruns nothing after an edit here.
"""
