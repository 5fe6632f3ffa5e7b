"""The rulings of a release gate as files that pipelines show: Markdown and JUnit."""

from xml.etree import ElementTree

from persistcal.evaluation.gate import FAIL, UNDECIDED, Gate, Ruling
from persistcal.report.phrases import ruling_text

SIGNS = {"pass": "✅", FAIL: "❌", UNDECIDED: "❔"}


def as_markdown(verdict: str, gate: Gate | None) -> str:
    """Return a verdict, and a table of the rulings of a gate, as Markdown."""
    lines = ["```", verdict, "```", ""]
    if gate:
        rows = [
            f"| {SIGNS[one.result]} {one.result} | {ruling_text(one)} |" for one in gate.rulings
        ]
        lines += [f"**Gate: {gate.result}**", "", "| result | rule |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def as_junit(gate: Gate) -> str:
    """Return a test case per ruling: a failure, or skipped if it is undecided."""

    def count(result: str) -> str:
        return str(sum(ruling.result == result for ruling in gate.rulings))

    suite = ElementTree.Element("testsuite", name="persistcal", tests=str(len(gate.rulings)))
    suite.set("failures", count(FAIL))
    suite.set("skipped", count(UNDECIDED))
    for ruling in gate.rulings:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_place(ruling),
            name=f"{ruling.key} {ruling.estimator}".strip(),
        )
        kind = {FAIL: "failure", UNDECIDED: "skipped"}.get(ruling.result)
        if kind:
            ElementTree.SubElement(case, kind, message=ruling_text(ruling))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _place(ruling: Ruling) -> str:
    pair = f"{ruling.earlier} → {ruling.later}"
    return ", ".join(filter(None, (ruling.model, ruling.dataset, pair, ruling.slice)))
