"""The metrics, one class each. The Snakefile imports these modules and no package.

Modules
-------
base: what a metric is, and what a class must define
registry: Δ and Δ₀, AUC, Brier score and SmoothECE, in the order of the columns of tables
"""
