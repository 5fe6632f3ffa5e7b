"""Imports and set-up that jobs of small models share, done once before forking.

`tools/fork_jobs.py` imports this module, once, in the Python that jobs are forked from.
"""

# ruff: noqa: F401
from contextlib import suppress

import matplotlib.backends.backend_agg
import matplotlib.backends.backend_pdf
import matplotlib.pyplot
import numba
import pandas
import pyarrow.dataset
import pyarrow.parquet
import scipy.stats
import sklearn.isotonic
import sklearn.linear_model
import snakemake.script

with suppress(ImportError):  # which studies without models do not need
    import peft
    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    get_checkpoint_conversion_mapping("olmo3")  # compiles the patterns of all architectures
numba.njit(lambda: None)()  # cached functions also need the compiler's tables
