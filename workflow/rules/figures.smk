"""Draw the figures."""


rule draw_full_vs_contrast:
    input:
        intervals=expand(rules.collect_significance.output.intervals, part=R),
    output:
        pdf=f"{R}/figures/full_vs_contrast.pdf",
        png=report(
            f"{R}/figures/full_vs_contrast.png",
            caption="../report/full_vs_contrast.rst",
            category="Figures",
            labels={"figure": "full set against contrast sets"},
        ),
    log:
        f"{LOGS}/draw_full_vs_contrast.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        labels=LABELS,
        code=digest_of("report/draw_full_vs_contrast.py"),
    script:
        "../scripts/report/draw_full_vs_contrast.py"
