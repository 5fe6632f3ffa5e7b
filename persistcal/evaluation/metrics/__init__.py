"""The metrics, one class each. The Snakefile imports these modules and no package."""
