"""The metrics, one class each. The Snakefile imports these modules and no package.

Modules
-------
base: what a metric is, and what a class must define
calibration: Brier score and SmoothECE
ranking: AUC, and the AUC of the change in confidence
registry: all metrics by name, in the order of the columns of tables
sign: Δ and Δ₀, plain and balanced over gained and lost questions
"""
