"""Show the jobs of a run of Snakemake, the summary of the study, and the path of the page."""

import time
from collections import Counter, defaultdict
from pathlib import Path

SHOWN = 6  # kinds of job that are named


def end_of_run(results: Path, since: float) -> str:
    """Return some lines about what the run that started at the time `since` has made."""
    lines = [jobs_text(results / "logs", since)]
    page = results / "report" / "index.html"
    if is_new(page, since):
        summary = page.with_name("summary.txt").read_text(encoding="utf-8").rstrip()
        lines += [summary, f"Page: {page}"]
    return "\n\n".join(lines)


def is_new(path: Path, since: float) -> bool:
    """Return whether a file exists and was written after `since`."""
    return path.exists() and path.stat().st_mtime >= since


def jobs_text(logs: Path, since: float) -> str:
    """Return how many jobs there were, and how long each kind took."""
    paths = [p for p in logs.rglob("*.log") if is_new(p, since)]
    jobs = Counter(path.relative_to(logs).with_suffix("").parts[0] for path in paths)
    seconds: dict[str, list[float]] = defaultdict(list)
    for path in sorted(logs.rglob("*.tsv")):
        if is_new(path, since):
            rows = path.read_text(encoding="utf-8").splitlines()[1:]
            rule = path.relative_to(logs).parts[0].removesuffix(".tsv")
            seconds[rule] += [float(row.split("\t")[0]) for row in rows]
    longest = sorted(seconds, key=lambda rule: -sum(seconds[rule]))[:SHOWN]
    lines = [f"{sum(jobs.values()):,} jobs in {clock(time.time() - since)}"]
    for rule in longest:
        n = f"{len(seconds[rule]):,} {'job' if len(seconds[rule]) == 1 else 'jobs'}"
        lines.append(f"  {rule:<24}{n:>10}{clock(round(sum(seconds[rule]), 1)):>10}")
    rest = {rule: n for rule, n in jobs.items() if rule not in longest}
    if rest:
        lines.append(
            "  and " + ", ".join(f"{rule} ({n:,})" for rule, n in sorted(rest.items()))
        )
    return "\n".join(lines)


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, with hours where there are any.

    >>> clock(7.4), clock(312), clock(3700)
    ('0:07', '5:12', '1:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
