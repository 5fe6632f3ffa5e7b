"""The paper's further analyses: their files, and what figures and tables show of them."""


def transfers():
    """Return the transfer matrices of each dataset."""
    found = {}
    for pair in study.analysed("transfer") if study.runs_models else []:
        matrix = files_of_rows(rules.measure_transfer.output.transfer, [pair])
        found.setdefault(pair.dataset, []).extend(matrix)
    return found


COMPARED = study.models_analysed("weight_similarity") if study.runs_models else []
HEADROOMS = (
    files_of_rows(
        rules.measure_headroom.output.headroom, study.analysed("gcm_headroom")
    )
    if study.runs_models
    else []
)
VARIANCE = [rules.correlate_variance.output.csv] if VARIANCES_MEASURED else []
SIMILARITIES = expand(rules.compare_weights.output.similarities, model=COMPARED)

# Figures and tables of the analyses, and their rows
PAPER_VIEWS = {"figure": paper_views.FIGURES, "table": paper_views.TABLES}
PAPER_ROWS = {
    "transfer": transfers(),
    "headroom": HEADROOMS,
    "weight_similarity": SIMILARITIES,
}
