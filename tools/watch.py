"""Repeat a study whenever a running training has saved a checkpoint, or a log has appeared.

`python -m tools.watch --configfile mine.yaml --model mine --found 'runs/mine/step{checkpoint}'`
writes what it finds to a config of its own, `watched.yaml`, which is laid over the others, and
runs Snakemake; further arguments are Snakemake's.
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from snakemake.common.configfile import load_configfile
from snakemake.utils import update_config

from persistcal.store.files import write_whole

PLACE = "{checkpoint}"
FEWEST = 2  # evaluation checkpoints that can be compared
FORK_JOBS = Path(__file__).with_name("fork_jobs.py")


class WatchError(ValueError):
    """Nothing can be watched with these arguments."""


def find_checkpoints(pattern: str, *, settled_before: float) -> dict[str, Path]:
    """Return the folders and files that match, by the name of their checkpoint, in order.

    Numbers in names count as numbers: 200 comes before 1000. A folder counts once it has
    weights and a `config.json`. What has changed since `settled_before` may still be written.
    """
    path = Path(pattern)
    if path.name.count(PLACE) != 1 or PLACE in str(path.parent):
        raise WatchError(
            f"--found {pattern}: write {PLACE} once, in the last part of the path."
        )
    before, after = map(re.escape, path.name.split(PLACE))
    name = re.compile(f"{before}(.+){after}")
    found = {
        match[1]: entry
        for entry in (path.parent.iterdir() if path.parent.is_dir() else ())
        if (match := name.fullmatch(entry.name)) and _is_settled(entry, settled_before)
    }
    return dict(sorted(found.items(), key=lambda item: _by_numbers(item[0])))


def _by_numbers(name: str) -> list[tuple[int, str]]:
    parts = re.findall(r"\d+|\D+", name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _is_settled(entry: Path, before: float) -> bool:
    files = [entry] if entry.is_file() else [p for p in entry.rglob("*") if p.is_file()]
    whole = entry.is_file() or (
        any(p.suffix == ".safetensors" for p in files) and (entry / "config.json") in files
    )
    return whole and all(p.stat().st_mtime <= before for p in files)


def watched_config(
    config: Mapping[str, Any], model: str, found: Mapping[str, Path], dataset: str | None
) -> dict[str, Any]:
    """Return the config that makes evaluation checkpoints of what was found.

    Checkpoints that the config already names, by their revision, keep their names; its
    `earlier` ones are not evaluated. Pairs are adjacent unless the config says which, so that
    one checkpoint more costs the same each time. Logs of answers are about a `dataset`.
    """
    about = config.get("models", {}).get(model)
    if about is None:
        raise WatchError(f"--model {model}: models has no such key; add it to the config.")
    known = about.get("checkpoints", {}).items()
    named = {entry["revision"]: name for name, entry in known if "revision" in entry}
    study: dict[str, Any] = {} if "pairs" in config.get("study", {}) else {"pairs": "adjacent"}
    if dataset is None:
        for path in found.values():
            if path.parent != Path(about.get("repo", "")):
                raise WatchError(
                    f"--found looks in {path.parent}, but models.{model}.repo is "
                    f"{about.get('repo')}; let both be the same folder."
                )
        names = {named.get(path.name, name): path for name, path in found.items()}
        checkpoints = {name: {"revision": path.name} for name, path in names.items()}
        overlay = {"checkpoints": checkpoints}
    else:
        names, overlay = dict(found), {}
        study["answers"] = [
            {"file": str(path), "model": model, "checkpoint": name, "dataset": dataset}
            for name, path in names.items()
        ]
    earlier = about.get("earlier", [])
    evaluation = [name for name in names if name not in earlier]
    complete = set(earlier) <= set(names) and len(evaluation) >= FEWEST
    if not complete:
        return {}
    return {"models": {model: {**overlay, "evaluation": evaluation}}, "study": study}


def run_snakemake(words: Sequence[str]) -> int:
    """Run Snakemake with forked jobs, and return its exit status."""
    return subprocess.run([sys.executable, str(FORK_JOBS), *words], check=False).returncode


def main(words: Sequence[str]) -> None:
    """Watch until interrupted, or look once."""
    parser = argparse.ArgumentParser(prog="python -m tools.watch", description=__doc__)
    parser.add_argument("--configfile", nargs="+", required=True, help="the study's config")
    parser.add_argument("--model", required=True, help="key of models that is trained")
    parser.add_argument("--found", required=True, help=f"path of a checkpoint, with {PLACE}")
    parser.add_argument("--dataset", help="of logs of answers instead of weights")
    parser.add_argument("--overlay", default="watched.yaml", help="config that is written")
    parser.add_argument("--every", type=float, default=60, help="seconds between two looks")
    parser.add_argument("--settle", type=float, default=30, help="seconds without a change")
    parser.add_argument("--once", action="store_true", help="look once, as from cron")
    known, others = parser.parse_known_args(words)
    config: dict[str, Any] = {}
    for path in known.configfile:
        update_config(config, load_configfile(path))
    done: dict[str, Any] = {}
    while True:
        found = find_checkpoints(known.found, settled_before=time.time() - known.settle)
        overlay = watched_config(config, known.model, found, known.dataset)
        if overlay and overlay != done:
            write_whole(known.overlay, yaml.safe_dump(overlay, sort_keys=False))
            print(f"{len(found)} checkpoints, the last is {list(found)[-1]}", flush=True)
            configs = ["--configfile", *known.configfile, known.overlay]
            status = run_snakemake([*others, *configs])
            if status and known.once:
                sys.exit(status)
            done = overlay if not status else {}
        elif known.once or not done:
            print(f"{len(found)} checkpoints; nothing to do yet", flush=True)
        if known.once:
            return
        time.sleep(known.every)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except WatchError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("Stopped watching; what is made stays.")
