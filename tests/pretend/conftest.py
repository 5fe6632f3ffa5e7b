"""Collect the tests for pretended GPUs if they exist, and else the test that starts them."""

import sys

STARTER = "test_under_pretence.py"
started = getattr(sys.modules.get("pretended_cuda"), "driver", None)
collect_ignore_glob = [STARTER] if started else ["test_[!u]*.py"]
