"""States against each other, in sentences."""

from collections.abc import Hashable, Mapping
from typing import Any

from persistcal.report.page.contents import Contents
from persistcal.report.page.tables import short
from persistcal.report.state_views import pair_title, place_title

LEVEL = 0.05


def states_sentences(study: Contents) -> list[dict[str, str]]:
    """Return a sentence on the accuracies of each model, and of each two models.

    Of a model's pairs that of the most distant checkpoints is named, and how many others can
    be told apart.
    """
    tables = [table.rows for table in study.tables if table.files.name == "states"]
    if not tables:
        return []
    states = tables[0].fillna({"other_model": ""})
    accuracies = states[states["metric"] == "accuracy"]
    checkpoints = {
        model: {name: stage.label for name, stage in of.items()}
        for model, of in study.stages.items()
    }
    said = []
    for place, group in accuracies.groupby(["model", "other_model", "dataset"], sort=False):
        rows = group.to_dict("records")
        ends = [row for row in rows if row["earlier"] == rows[0]["earlier"]][-1]
        text = _sentence(ends, pair_title(ends, checkpoints))
        if len(rows) > 1:
            told = sum(row["p_holm"] < LEVEL for row in rows)
            text += f" {told} of {len(rows)} pairs of checkpoints differ in accuracy."
        said.append({"about": place_title(place, study.labels), "text": text})
    return said


def _sentence(row: Mapping[Hashable, Any], pair: str) -> str:
    interval = f"[{short(row['lower_2_5pct'])}, {short(row['upper_97_5pct'])}]"
    values = f"{short(row['earlier_value'])} to {short(row['later_value'])}"
    if row["p_holm"] >= LEVEL:
        return (
            f"The accuracies of {pair} ({values}) cannot be told apart: the difference of "
            f"{short(row['difference'])} {interval} may be zero (McNemar's test after Holm)."
        )
    way = "rises" if row["difference"] > 0 else "falls"
    by = short(abs(row["difference"]))
    return f"Accuracy {way} from {pair}, {values}: by {by} {interval}."
