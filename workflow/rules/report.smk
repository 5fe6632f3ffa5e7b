"""Tables and figures, and the study beside the paper."""

from study.released import settings_compared, shares_cells

EVALUATED_LABELS = {
    **study.labels,
    "estimators": {
        name: label
        for name, label in study.labels["estimators"].items()
        if not study.estimates or name in {row.estimator for row in study.evaluated}
    },
}


rule make_table:
    input:
        metrics=per_job(inputs.metrics_shown),
        significance=rules.compare_estimators.output.significance,
    output:
        **reported_table("{table}", "table"),
    log:
        f"{LOGS}/make_table/{{table}}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        description=per_job(inputs.table_description),
        models=MODELS,
        datasets=per_job(inputs.datasets_shown),
        labels=per_job(inputs.labels_shown),
        missing_ok=study.chosen["source"] == "release",
    script:
        "../scripts/report/make_table.py"


PRINTED = inputs.find_file("resources/paper/results.csv")


for scope in SCOPES:

    rule:
        name:
            scope["name"]("compare", "with_paper")
        input:
            intervals=f"{scope['folder']}/intervals.csv",
            tables=expand(rules.make_table.output.csv, table=scope["tables"]),
            paper=PRINTED,
        output:
            comparison=f"{scope['folder']}/paper_comparison.csv",
        log:
            f"{LOGS}/{scope['name']('compare', 'with_paper')}.log",
        conda:
            "../../envs/cpu.yaml"
        params:
            labels=study.labels,
            settings=settings_compared(config, ROOT),
        script:
            "../scripts/report/compare_with_paper.py"


# Studies that share no model and dataset with the paper have nothing to compare.
OF_PAPER = shares_cells(study.labels, Path(PRINTED))

CHECKPOINT_LABELS = {
    m: {c: study.labels_of(m).get(c, c) for c in study.evaluation(m)} for m in MODELS
}
# A study of single checkpoints has no two states to compare.
HAS_PAIRS = any(len(study.evaluation(m)) > 1 for m in MODELS)
HAS_STATES = len(MODELS) > 1 or HAS_PAIRS
MAIN = [row.estimator for table in TABLES[:1] for row in study.shown(table)]


# The estimators of the table of that name, if the study makes it
LEADERBOARD = (
    [row.estimator for row in study.shown("leaderboard")]
    if "leaderboard" in study.every_table
    else []
)


# Figures by the names of their files: a function of persistcal/report/figures.py, the rows that
# it reads, its settings, and how Snakemake's report calls and explains it. Targets make all
# figures that are `shown` (by default all): `study` those of its own, `all` also the others.
FIGURES = {
    "full_vs_contrast": {
        "function": "full_vs_contrast_figure",
        "artifact": "INTERVALS",
        "rows": rules.collect_significance.output.intervals,
        "settings": EVALUATED_LABELS,
        "label": "full set against contrast sets",
        "caption": "How well each estimator ranks right above wrong answers: on all questions "
        "(full set) and on those whose correctness changes between checkpoints (contrast sets). "
        "A confidence that does not follow knowledge stays at 0.5 on the contrast sets, however "
        "good it is on the full set.",
    },
    "distance": {
        "function": "distance_figure",
        # with fewer checkpoints there are too few distances
        "shown": max(len(study.evaluation(m)) for m in MODELS) > 4,
        "artifact": "PAIRS",
        "rows": rules.measure_pairs.output.pairs,
        "settings": {k: EVALUATED_LABELS[k] for k in ("models", "estimators")},
        "label": "over the distance between checkpoints",
        "caption": "How well estimators notice a change, over the distance of the two "
        "checkpoints of a pair: means over pairs of that distance, with one standard deviation "
        "to either side. Dashed: chance.",
    },
    "states": {
        "function": "states_figure",
        "shown": HAS_STATES,
        "artifact": "STATES",
        "rows": rules.collect_states.output.states,
        "settings": {
            "checkpoints": CHECKPOINT_LABELS,
            "labels": EVALUATED_LABELS,
            "only": MAIN,
        },
        "label": "states against each other",
        "caption": "Differences between two checkpoints of a model, or the last ones of two "
        "models, on the questions that both answered: accuracy, and AUC, Brier score and "
        "SmoothECE of each estimator on all questions. Bars are 95 % intervals. Dashed: no "
        "difference.",
    },
    "leaderboard": {
        "function": "leaderboard_figure",
        "target": "all",
        "shown": bool(LEADERBOARD),
        "artifact": "INTERVALS",
        "rows": rules.collect_all_significance.output.intervals,
        "settings": {
            **study.labels,
            # Of the study's own datasets: of others, only what a table shows is evaluated.
            "datasets": {d: PLACES["datasets"][d] for d in DATASETS},
            "only": list(dict.fromkeys(LEADERBOARD)),
        },
        "label": "every kind of confidence",
        "caption": "Every kind of confidence, the one that follows knowledge best on top: Δ₀ᵇ "
        "and AUC on questions whose correctness changes between checkpoints (contrast sets), "
        "and AUC on all questions (full set). Bars are 95 % bootstrap intervals of single "
        "estimators: the table of the same name marks those that cannot be distinguished from "
        "the best. Colours are families; on the dashed lines, confidence follows nothing.",
    },
}

if NAMED_PAIRS:
    FIGURES["changes"] = {
        "function": "changes_figure",
        "artifact": "CHANGES",
        "rows": rules.measure_changes.output.changes,
        "settings": {**EVALUATED_LABELS, "only": MAIN},
        "label": "kinds of change",
        "caption": "Whether confidence follows each kind of change: Δ₀ᵇ and AUC on the questions "
        "whose correctness it changes, those that the later checkpoints gained (+) and lost (−). "
        "Bars are 95 % intervals over questions, and over seeds where an estimator has them. "
        "Dashed: confidence that follows nothing.",
    }

if not study.chosen["predictions"]:
    DESCRIBED = {model: study.described(model) for model in MODELS}
    FIGURES["accuracy"] = {
        "function": "accuracy_figure",
        "artifact": "ACCURACIES",
        "rows": rules.compute_accuracies.output.accuracies,
        "settings": {
            "checkpoints": DESCRIBED,
            "evaluation": {m: study.evaluation(m) for m in MODELS},
            **PLACES,
        },
        "label": "accuracy over training",
        "caption": "Accuracy on the test questions over training. Estimators may learn from the "
        "training checkpoints and are evaluated on the evaluation checkpoints.",
    }

if study.runs_models:
    TRANSFERRED = dict.fromkeys(model for model, _ in study.analysed("transfer"))
    FIGURES |= {
        f"transfer_{dataset}": {
            "function": "transfer_figure",
            "target": "all",
            "artifact": "TRANSFER",
            "rows": expand(
                rules.measure_transfer.output.transfer, model=models, dataset=dataset
            ),
            "settings": {
                "sets": {m: inputs.transfer_sets(m) for m in TRANSFERRED},
                "random_later": [
                    r
                    for r in list(config["analyses"]["transfer"]["recipes"])
                    if study.recipe(r)["labels"] == "random_later"
                ],
                "checkpoints": {m: study.labels_of(m) for m in TRANSFERRED},
                "models": PLACES["models"],
                "recipes": config["analyses"]["transfer"]["recipes"],
            },
            "label": f"transfer between checkpoints, {dataset}",
            "caption": "Full-set AUC of adapters trained at one checkpoint (left: on it alone; "
            "right: on two neighbours, the later one's labels replaced by coin flips) and used "
            "at every checkpoint.",
        }
        for dataset, models in transfers().items()
    }
    HEADROOMS = of_each(
        rules.measure_headroom.output.headroom, study.analysed("gcm_headroom")
    )
    FIGURES["gcm_headroom"] = {
        "function": "headroom_figure",
        "target": "all",
        "shown": bool(HEADROOMS),
        "artifact": "HEADROOM",
        "rows": HEADROOMS,
        "settings": {
            **PLACES,
            **{
                who: study.labels["estimators"][HEADROOM[who]]
                for who in ("verifier", "oracle")
            },
        },
        "label": "headroom of the external verifier",
        "caption": "Gain of oracle training over an external verifier in contrast-set AUC, with "
        "its 95 % bootstrap interval, against how often the verifier's backbone is wrong about "
        "the same questions.",
    }

    COMPARED = [
        m for m in MODELS if m in config["analyses"]["weight_similarity"]["models"]
    ]


rule draw_figure:
    input:
        rows=rows_of_figure,
    output:
        pdf=f"{RESULTS}/figures/{{figure}}.pdf",
        png=report(
            f"{RESULTS}/figures/{{figure}}.png",
            caption="../report/figure.rst",
            category="Figures",
            labels=label_of_figure,
        ),
    log:
        f"{LOGS}/draw_figure/{{figure}}.log",
    wildcard_constraints:
        figure=one_of(FIGURES),
    conda:
        "../../envs/cpu.yaml"
    params:
        figure=about_figure,
    script:
        "../scripts/report/draw_figure.py"


# Tables that compare no estimators, by the names of their files: a function of
# persistcal/report/tables.py, the rows that it reads, and its settings.
PLAIN_TABLES = {
    f"contrast_set_sizes_{dataset}": {
        "function": "contrast_set_sizes",
        "artifact": "CONTRAST_SETS",
        "rows": rules.collect_metrics.output.contrast_sets,
        "caption": f"Questions that one checkpoint of {PLACES['datasets'][dataset]} answers "
        "correctly and another one does not. Sets of fewer than "
        f"{config['datasets'][dataset]['min_contrast']} questions are dropped.",
        "settings": {
            "dataset": dataset,
            "checkpoints": {
                m: {c: study.labels_of(m)[c] for c in study.evaluation(m)}
                for m in MODELS
            },
            "min_contrast": config["datasets"][dataset]["min_contrast"],
            "labels": PLACES,
        },
    }
    for dataset in DATASETS
}

PLAIN_TABLES["calibration"] = {
    "function": "calibration",
    "artifact": "INTERVALS",
    "rows": rules.collect_significance.output.intervals,
    "caption": "SmoothECE of each estimator with its noise floor, the value of a calibrated "
    "estimator with these confidences, and the p-value of calibration.",
    "settings": {"labels": EVALUATED_LABELS},
}

if HAS_STATES:
    PLAIN_TABLES["states"] = {
        "function": "states",
        "artifact": "STATES",
        "rows": rules.collect_states.output.states,
        "caption": "Differences between two checkpoints of a model, or the last ones of two "
        "models, with 95 % intervals and p-values.",
        "settings": {"checkpoints": CHECKPOINT_LABELS, "labels": EVALUATED_LABELS},
    }

if HAS_PAIRS:
    PLAIN_TABLES["thresholds"] = {
        "function": "thresholds",
        "artifact": "THRESHOLDS",
        "rows": rules.check_thresholds.output.thresholds,
        "caption": "Thresholds that reach a precision on the earlier checkpoint, and whether "
        "they keep it on the later one.",
        "settings": {
            "only": MAIN,
            "checkpoints": CHECKPOINT_LABELS,
            "labels": EVALUATED_LABELS,
        },
    }

ON_CONTRAST_SETS = [
    ("contrast", m) for m in ("delta0_balanced", "change_auc", "auc", "brier", "smece")
]
if HAS_PAIRS:
    PLAIN_TABLES |= parts_table(
        "pairs",
        rules.measure_pairs.output.pairs,
        "PAIRS",
        "Metrics on the contrast set of each pair of checkpoints, conditioned by odds, and "
        "whether it is large enough for the means over pairs.",
        {
            "earlier": "Earlier",
            "later": "Later",
            "improvement": "Gained",
            "regression": "Lost",
            "kept": "Kept",
        },
        ON_CONTRAST_SETS,
        MAIN,
    )
    PLAIN_TABLES |= parts_table(
        "min_contrast",
        rules.measure_pairs.output.min_contrast,
        "MIN_CONTRAST",
        "Means over the pairs whose contrast sets have at least so many questions, for each "
        "size of a contrast set. Chosen: the pairs that the study keeps.",
        {
            "min_contrast": "At least",
            "kept": "Pairs",
            "improvement": "Gained",
            "regression": "Lost",
            "chosen": "Chosen",
        },
        ON_CONTRAST_SETS,
        MAIN,
    )

if NAMED_PAIRS:
    PLAIN_TABLES["by_change"] = {
        "function": "by_change",
        "artifact": "CHANGES",
        "rows": rules.measure_changes.output.changes,
        "caption": "Kinds of change, and whether confidence follows each, with 95 % intervals.",
        "settings": {"only": MAIN, "labels": EVALUATED_LABELS},
    }

ON_SUBSETS = [("contrast", m) for m in ("delta0_balanced", "change_auc", "auc")]
ON_SUBSETS += [("full", m) for m in ("auc", "brier", "smece")]
if not study.chosen["predictions"]:
    PLAIN_TABLES |= parts_table(
        "subsets",
        expand(rules.measure_subsets.output.subsets, model=MODELS, dataset=DATASETS),
        "SUBSETS",
        "Metrics by the margin between the probabilities of an answer and of the second "
        "candidate (in a contrast set, the smaller one of a question's two answers), and by "
        "whether a training question has the same reference answer. Flips: contrast "
        "questions among those that both checkpoints of a pair answered.",
        {
            "by": "By",
            "group": "Group",
            "n_answers": "Answers",
            "accuracy": "Accuracy",
            "n_contrast": "Contrast",
            "improvement": "Gained",
            "regression": "Lost",
            "flips": "Flips",
        },
        ON_SUBSETS,
        [],
        parts=["all", "margin", "reference answer"],
    )
    PLAIN_TABLES |= parts_table(
        "by_answer",
        expand(rules.measure_subsets.output.subsets, model=MODELS, dataset=DATASETS),
        "SUBSETS",
        "Metrics on the questions of the contrast sets for which a baseline that only knows "
        "the text of the answers falls, stays or rises from the earlier to the later "
        "checkpoint. The baseline is surer of an answer that is rarer in the references of "
        "the training questions, longer, or less popular with the same checkpoint.",
        {
            "by": "By",
            "group": "Baseline",
            "improvement": "Gained",
            "regression": "Lost",
        },
        [("contrast", "delta0_balanced"), ("contrast", "auc")],
        [],
        parts=["answer rarity", "answer length", "answer popularity"],
    )
    if config["evaluation"]["by_category"]:
        PLAIN_TABLES |= parts_table(
            "by_category",
            expand(
                rules.measure_subsets.output.subsets,
                model=MODELS,
                dataset=[d for d in DATASETS if inputs.wants_categories(d)],
            ),
            "SUBSETS",
            "Metrics by the category of the questions. The pairs are those that all questions "
            "together keep. Flips: contrast questions among those that both checkpoints of a "
            "pair answered.",
            {
                "group": "Category",
                "n_answers": "Answers",
                "accuracy": "Accuracy",
                "n_contrast": "Contrast",
                "improvement": "Gained",
                "regression": "Lost",
                "flips": "Flips",
            },
            ON_SUBSETS,
            [],
            parts=["category"],
        )
    PLAIN_TABLES["checkpoints"] = {
        "function": "checkpoints",
        "artifact": "ACCURACIES",
        "rows": rules.compute_accuracies.output.accuracies,
        "caption": "Training tokens of the checkpoints and their accuracy on the test "
        "questions.",
        "settings": {"checkpoints": DESCRIBED, "labels": PLACES},
    }

if said := [
    row for row in study.evaluated if study.estimates and study.is_verbal(row.estimator)
]:
    PLAIN_TABLES["unsaid"] = {
        "function": "unsaid",
        "artifact": "UNSAID",
        "rows": of_each(paths.unsaid, said),
        "caption": "Answers about which a checkpoint said no confidence that can be read.",
        "settings": {"checkpoints": CHECKPOINT_LABELS, "labels": EVALUATED_LABELS},
    }

if study.estimates and not study.has_own_options:  # else no answer is judged
    if AUDIT["filled"] and study.analysed("audit"):
        PLAIN_TABLES["corrections"] = {
            "function": "corrections",
            "artifact": "CORRECTIONS",
            "rows": of_each(
                rules.correct_results.output.corrections, study.analysed("audit")
            ),
            "caption": "Numbers by the judge's labels, and corrected by a person's.",
            "settings": {"checkpoints": CHECKPOINT_LABELS, "labels": EVALUATED_LABELS},
        }

FURTHER_PLAIN_TABLES = {}  # of the target `all`

if study.runs_models:
    if COMPARED:
        FURTHER_PLAIN_TABLES["weight_similarity"] = {
            "function": "weight_similarity",
            "artifact": "WEIGHT_SIMILARITIES",
            "rows": expand(rules.compare_weights.output.similarities, model=COMPARED),
            "caption": "Cosine similarity of the flattened weights of each two checkpoints.",
            "settings": {
                "checkpoints": {m: study.labels_of(m) for m in COMPARED},
                "labels": PLACES,
            },
        }
    for kind, caption in {
        "categories": "Categories of the questions of {} that are asked, and how many there "
        "are of each.",
        "examples": "Two test questions of each category of {}, with their reference answers.",
    }.items():
        shown = config["analyses"]["questions"][kind]
        FURTHER_PLAIN_TABLES |= {
            f"{dataset}_{kind}": {
                "function": f"question_{kind}",
                "artifact": "QUESTIONS",
                "rows": paths.questions.format(dataset=dataset),
                "caption": caption.format(PLACES["datasets"][dataset]),
                "settings": {"dataset": dataset, "labels": PLACES},
            }
            for dataset in study.datasets
            if dataset in shown
        }


EVERY_PLAIN_TABLE = PLAIN_TABLES | FURTHER_PLAIN_TABLES


rule make_plain_table:
    input:
        rows=rows_of_plain_table,
    output:
        **reported_table("{table}", "plain_table"),
    log:
        f"{LOGS}/make_plain_table/{{table}}.log",
    wildcard_constraints:
        table=one_of(EVERY_PLAIN_TABLE),
    conda:
        "../../envs/cpu.yaml"
    params:
        table=about_plain_table,
    script:
        "../scripts/report/make_plain_table.py"
