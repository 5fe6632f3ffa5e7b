"""Turn the authors' released results into the artifacts of a study."""

import logging
import tempfile
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from persistcal.imports.answers import imported_answers
from persistcal.imports.release import predictions
from persistcal.imports.release.candidates import Answers, read_candidates
from persistcal.imports.release.estimators import Dataset, Model, read_estimates
from persistcal.imports.release.files import TREE
from persistcal.imports.release.safe_archive import check_digest, unpack
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def import_release(
    archive_path: str, digest_path: str, questions_paths: Sequence[str],
    beams_paths: Sequence[str], clusters_paths: Sequence[str], labels_paths: Sequence[str],
    scores_paths: Sequence[str], predictions_paths: Sequence[str],
    answers_paths: Sequence[str], missing_path: str,
    *, models: Mapping[str, Any], backbones: Mapping[str, Any],
    datasets: Mapping[str, Any], recipes: Sequence[str], seeds: Sequence[int],
    posthoc: Mapping[str, str],
) -> None:  # fmt: skip
    """Write all that the archive holds about `models` and `datasets`.

    Questions are by dataset, predictions by model and dataset, the other tables by model
    (then backbone, but for scores), checkpoint and dataset. `posthoc` says how each
    estimator is calibrated that is fitted here.
    """
    check_digest(archive_path, digest_path)
    known = {key: Model(**about) for key, about in {**models, **backbones}.items()}
    asked = {name: Dataset(**about) for name, about in datasets.items()}
    cells = [(k, c, name) for k, m in known.items() for c, name in product(m.revisions, asked)]
    candidates = dict(
        zip(cells, zip(beams_paths, clusters_paths, labels_paths, strict=True), strict=True)
    )
    asked_of = [cell for cell in cells if cell[0] in models]
    scores = dict(zip(product(asked_of, recipes), scores_paths, strict=True))
    evaluated = [(k, d, c) for k, d in product(models, asked) for c in known[k].evaluation]
    answered = dict(zip(evaluated, answers_paths, strict=True))
    predicted = dict(zip(product(models, asked), predictions_paths, strict=True))
    missing: list[tuple[str, ...]] = []
    Path(missing_path).parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=Path(missing_path).parent) as folder:
        log.info("%d files in %s", unpack(archive_path, folder, below=TREE), archive_path)
        root = Path(folder, TREE)
        for questions_path, (name, dataset) in zip(questions_paths, asked.items(), strict=True):
            estimated = {}
            for key, model in known.items():
                answers: dict[tuple[str, str], Answers] = {}
                for checkpoint, revision in model.revisions.items():
                    read = read_candidates(root, name, model.repo, revision, dataset.splits)
                    beams, clusters, labels = candidates[key, checkpoint, name]
                    about = {"model": key, "checkpoint": checkpoint, "dataset": name}
                    artifacts.write(read.beams, beams, artifacts.BEAMS, about=about)
                    artifacts.write(read.clusters, clusters, artifacts.CLUSTERS, about=about)
                    artifacts.write(read.labels, labels, artifacts.LABELS, about=about)
                    answers |= {(checkpoint, split): a for split, a in read.answers.items()}
                    missing += [(key, name, "candidates", checkpoint, p) for p in read.missing]
                if key in models:
                    estimated[key] = read_estimates(
                        root, model, name, dataset, answers, seeds=seeds
                    )
                    missing += [(key, name, *row) for row in estimated[key].missing]
            excluded = predictions.find_excluded(dataset, list(estimated.values()))
            questions = predictions.questions(name, dataset, excluded)
            about = {"dataset": name}
            artifacts.write(questions, questions_path, artifacts.QUESTIONS, about=about)
            for key, estimates in estimated.items():
                rows = predictions.predictions(
                    known[key], name, dataset, estimates, excluded, posthoc=posthoc
                )
                about = {"model": key, "dataset": name}
                path = predicted[key, name]
                artifacts.write(rows, path, artifacts.PREDICTIONS, about=about)
                of_each = imported_answers(rows, list(known[key].evaluation))
                for checkpoint, table in zip(known[key].evaluation, of_each, strict=True):
                    path, here = answered[key, name, checkpoint], {"checkpoint": checkpoint}
                    artifacts.write(table, path, artifacts.ANSWERS, about={**about, **here})
                for checkpoint in known[key].revisions:
                    rows = predictions.transfer_scores(
                        name, dataset, checkpoint, estimates, excluded
                    )
                    for recipe in recipes:
                        path = scores[(key, checkpoint, name), recipe]
                        here = {"checkpoint": checkpoint, "answers": "transfer"}
                        of_recipe = rows[rows["recipe"] == recipe]
                        artifacts.write(
                            of_recipe, path, artifacts.SCORES, about={**about, **here}
                        )
    frame = pd.DataFrame(missing, columns=artifacts.MISSING.schema.names)
    artifacts.write_csv(frame, missing_path, artifacts.MISSING)
    if missing:
        log.warning("The archive lacks %d files: see %s", len(missing), missing_path)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    import_release(
        snakemake.input.archive,
        snakemake.input.digest,
        snakemake.output.questions,
        snakemake.output.beams,
        snakemake.output.clusters,
        snakemake.output.labels,
        snakemake.output.scores,
        snakemake.output.predictions,
        snakemake.output.answers,
        snakemake.output.missing,
        models=snakemake.params.models,
        backbones=snakemake.params.backbones,
        datasets=snakemake.params.datasets,
        recipes=snakemake.params.recipes,
        seeds=snakemake.params.seeds,
        posthoc=snakemake.params.posthoc,
    )
