"""The page as one HTML file that needs nothing else and may reach nothing else.

Charts are drawn by a few hundred lines of plain JavaScript. Vega would add 0.8 MB and,
under a policy without eval, an interpreter; a policy that names one style sheet and one
script by digest, and nothing besides, is easier to keep when both are our own.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import jinja2

from persistcal.report.families import Look
from persistcal.report.page.tables import about, group_heads, marks, printed

_ASSETS = jinja2.PackageLoader("persistcal.report.page", "assets")
# In one script, in this order; each file says what it is for.
_SCRIPTS = ("base.js", "charts.js", "explorer.js", "main.js")


def render(
    view: Mapping[str, Any], study: Mapping[str, Any], explorer: Mapping[str, Any]
) -> str:
    """Return the page from the variables of its template, which hold the estimators' `looks`.

    `study` and `explorer` are the script's data: for charts, and question by question.
    """
    environment = jinja2.Environment(
        loader=_ASSETS,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {f.__name__: f for f in (group_heads, marks, printed, about)}
    looks: Mapping[str, Look] = view["looks"]
    classes = family_classes(looks)
    style = environment.get_template("page.css").render(
        families={classes[look.family]: look for look in looks.values()}
    )
    script = "\n".join(_source(environment, name) for name in _SCRIPTS)
    script = f"'use strict';\n(() => {{\n{script}\n}})();"
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return environment.get_template("page.html").render(
        **{name: value for name, value in view.items() if name != "looks"},
        looks={name: (classes[look.family], look) for name, look in looks.items()},
        policy=policy,
        style=style,
        script=script,
        study=pack(study),
        explorer=pack(explorer),
    )


def family_classes(looks: Mapping[str, Look]) -> dict[str, str]:
    """Return the CSS class of each family of estimators."""
    families = dict.fromkeys(look.family for look in looks.values())
    return {family: f"f{place}" for place, family in enumerate(families)}


def _source(environment: jinja2.Environment, name: str) -> str:
    source, _, _ = _ASSETS.get_source(environment, name)
    return source


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def pack(data: Mapping[str, Any]) -> str:
    """Return JSON, compressed and as ASCII; the same data give the same text."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()
