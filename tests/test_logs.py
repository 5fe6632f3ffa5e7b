"""What a rule's log holds."""

import subprocess
import sys

SCRIPT = """
import logging
from persistcal.logs import log_to
log_to("folder/rule.log")
logging.getLogger("fontTools.subset").info("glyf pruned")
logging.getLogger("fontTools.subset").warning("no glyphs")
logging.getLogger("rule").info("42 rows")
raise ValueError("row 7")
"""


def test_records_and_the_traceback_but_no_chatter_of_packages(tmp_path, request):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={"PYTHONPATH": str(request.config.rootpath)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    text = (tmp_path / "folder" / "rule.log").read_text()
    assert text == done.stderr
    assert "INFO 42 rows" in text and "WARNING no glyphs" in text
    assert "CRITICAL row 7\nTraceback" in text and "glyf" not in text
