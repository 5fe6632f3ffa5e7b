"""Figures and tables of the paper's analyses; the Snakefile imports this module."""

from persistcal.report.catalogue import View

FIGURES = (
    View(
        name="transfer_{dataset}",
        function="reproduce.figures.transfer_figure",
        artifact="transfer",
        target="all",
        label="transfer between checkpoints, {dataset}",
        settings="transfer_sets random_later all_checkpoints models transfer_recipes",
        caption=(
            "Full-set AUC of adapters trained at one checkpoint (left: on it alone; right: on "
            "two neighbours, the later one's labels replaced by coin flips) and used at every "
            "checkpoint."
        ),
    ),
    View(
        name="gcm_headroom",
        function="reproduce.figures.headroom_figure",
        artifact="headroom",
        target="all",
        label="headroom of the external verifier",
        settings="models datasets verifier oracle",
        caption=(
            "Gain of oracle training over an external verifier in contrast-set AUC, with its "
            "95 % bootstrap interval, against how often the verifier's backbone is wrong "
            "about the same questions."
        ),
    ),
)
TABLES = (
    View(
        name="weight_similarity",
        function="reproduce.tables.weight_similarity",
        artifact="weight_similarities",
        files="weight_similarity",
        target="all",
        settings="all_checkpoints models",
        caption="Cosine similarity of the flattened weights of each two checkpoints.",
    ),
)
