"""Draw the picture of the README from docs/data/atlas.csv: `python -m tools.readme_picture`."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "images" / "full_vs_contrast.png"
NOTES = {
    "self_consistency": ("Self-consistency\nfollows knowledge", "#00796b", (-36, 4), "right"),
    "self_consistency_copy": (
        "Self-consistency copied\nfrom an earlier checkpoint:\n"
        "well above chance on all\nquestions, but only there",
        "#d81b60",
        (8, -34),
        "left",
    ),
}


def estimators() -> pd.DataFrame:
    """Return the full-set and the contrast-set AUC of each estimator of the demo."""
    names = pd.read_csv(ROOT / "docs" / "data" / "atlas.csv").set_index("name")["value"]
    scopes = names.index.to_series().str.extract(r"^(\w+)\.(full|contrast)\.auc$").dropna()
    return names[scopes.index].set_axis(pd.MultiIndex.from_frame(scopes)).unstack()


def main(file: Path = FILE) -> None:
    """Draw all estimators, and annotate two."""
    mpl.use("Agg")
    aucs = estimators()
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.axhline(0.5, color="0.4", linestyle="--", linewidth=1)
    axes.text(0.44, 0.51, "chance", color="0.4")
    unlabelled = aucs.drop(list(NOTES))
    axes.scatter(unlabelled["full"], unlabelled["contrast"], color="0.75", s=30)
    for name, (text, colour, offset, side) in NOTES.items():
        x, y = aucs["full"][name], aucs["contrast"][name]
        axes.scatter(x, y, color=colour, s=70, zorder=3)
        axes.annotate(
            text, (x, y), offset, textcoords="offset points", color=colour, ha=side, va="center"
        )
    axes.set(
        xlabel="AUC on all questions",
        ylabel="AUC on contrast sets",
        xlim=(0.43, 0.88),
        ylim=(0.33, 0.94),
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    main()
