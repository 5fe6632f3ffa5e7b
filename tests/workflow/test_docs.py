"""The documentation says what there is."""

import re
from pathlib import Path

from tools import config_readme

ROOT = Path(__file__).parents[2]


def test_the_reference_of_the_config_is_that_of_the_schema():
    text = (ROOT / "config" / "README.md").read_text(encoding="utf-8")
    assert text == config_readme.page(), "run `make config-readme`"
    assert len(re.findall(r"^\| `", text, flags=re.MULTILINE)) > 150
    assert not re.findall(r"^\| `[^|]*\|[^|]*\|[^|]*\| +\|$", text, flags=re.MULTILINE)


def test_links_of_the_documentation_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "config" / "README.md"]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page}: {target}"
