"""Under the pretence all tests are those of it; without, the one that starts it."""

import sys

STARTER = "test_under_pretence.py"
started = getattr(sys.modules.get("pretended_cuda"), "driver", None)
collect_ignore_glob = [STARTER] if started else ["test_[!u]*.py"]
