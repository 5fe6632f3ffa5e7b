"""Builds archives in the layout of the authors' release, and remembers every number in them."""

import hashlib
import io
import os
import pickle
import tarfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

SEEDS = [17, 18, 19]
MODELS = {
    "a": {
        "repo": "org/Model-A",
        "earlier": {"e1": "stage1-step1", "e2": "stage1-step2"},
        "evaluation": {"k1": "stage1-step10", "k2": "stage1-step20", "k3": "stage1-step30"},
    },
    "b": {
        "repo": "org/model-b",
        "earlier": {"kestrel": "kestrel", "ocelot": "early-ocelot"},
        "evaluation": {"phoenix": "phoenix", "starling": "deeper-starling"},
    },
}
DATASETS = {
    "triv": {"train": [0, 24], "test": [24, 64]},
    "jeop": {"train": [0, 24], "test": [60, 100]},
    "bio": {"test": [0, 30], "train_datasets": ["triv", "jeop"]},
}
# Shards cross the border between the splits, and need not be the same everywhere.
SHARDS = {"triv": [(0, 20), (20, 50), (50, 64)], "jeop": [(0, 24), (60, 80), (80, 100)],
          "bio": [(0, 30)]}  # fmt: skip
BLACKLIST = {"triv": {5, 30}, "jeop": {61}, "bio": set()}
SKIPPED = {("a", "triv", "k1", 40), ("a", "triv", "e2", 44), ("b", "jeop", "ocelot", 70)}
EMPTY = {("a", "triv", "k2", 41), ("b", "jeop", "phoenix", 72)}
UNDECIDED = {("a", "jeop", "k1", 90), ("b", "jeop", "starling", 75)}  # top never judged
ADAPTERS = {  # the checkpoints of the training, and the suffix of the configuration
    **{"non_oracle": ("earlier", "_ncand2"), "non_oracle_single": ("last", "_ncand2")},
    **{"oracle": ("evaluation", "_ncand2"), "oracle_respective": ("own", "_ncand2")},
    **{"non_oracle_1answer": ("earlier", ""), "non_oracle_single_1answer": ("last", "")},
    **{"oracle_1answer": ("evaluation", ""), "oracle_respective_1answer": ("own", "")},
    "oracle_single_data": ("evaluation", "_ncand2_onedata"),
    "oracle_pooled_data": ("own", "_ncand2_pooldata"),
}


class Release:
    """Writes the tree below `root`; `numbers` and `tops` contain the written values.

    With `levels`, confidences are whole parts of it, so that many are equal.
    """

    def __init__(self, root, models=MODELS, datasets=DATASETS, seed=0, levels=None):
        self.levels = levels
        self.tree = Path(root) / "results" / "conset"
        self.rng = np.random.default_rng(seed)
        self.numbers = {}  # (model, dataset, train dataset, estimator, seed, checkpoint)
        self.tops = {}  # (model, dataset, checkpoint): {index: (probability, label)}
        self.clusters = {}  # (model, dataset, checkpoint, index): [(answers, p, label)]
        for model, model_entry in models.items():
            for dataset, splits in datasets.items():
                for checkpoint, revision in {
                    **model_entry["earlier"],
                    **model_entry["evaluation"],
                }.items():
                    self.write_candidates(
                        model, model_entry["repo"], dataset, checkpoint, revision
                    )
                self.write_estimators(model, model_entry, dataset, splits)

    def write_candidates(self, model, repo, dataset, checkpoint, revision):
        rng, tops = self.rng, self.tops.setdefault((model, dataset, checkpoint), {})
        for begin, end in SHARDS[dataset]:
            beams, groups = [], []
            scores = torch.tensor(-rng.exponential(5, (end - begin, 10)), dtype=torch.float32)
            probabilities = torch.zeros(end - begin, 10)
            judged = torch.full((end - begin, 10), -1)
            for row, index in enumerate(range(begin, end)):
                answer_key = (model, dataset, checkpoint, index)
                texts = [f" {index}?{b}\n" for b in range(10)]
                beams.append(None if answer_key in SKIPPED else texts)
                if answer_key in SKIPPED or answer_key in EMPTY:
                    groups.append(None if answer_key in SKIPPED else [])
                    continue
                n = int(rng.integers(2, 11))
                # The first two spellings are equal without full stops.
                members = [
                    [f"{answer_key} {j}{ending}" for ending in (".5", "5", " and a half")][
                        : 1 + j % 3
                    ]
                    for j in range(n)
                ]
                groups.append(members)
                shares = self.rounded(np.sort(rng.dirichlet(np.ones(n)))[::-1])
                probabilities[row, :n] = torch.tensor(shares.copy(), dtype=torch.float32)
                judged[row, :n] = torch.tensor(rng.choice([1, 1, 2, 3], n))
                first = 0
                if answer_key in UNDECIDED:
                    judged[row, 0], first = -1, 1
                tops[index] = (float(probabilities[row, first]), int(judged[row, first]))
                self.clusters[answer_key] = [
                    (members[j], float(probabilities[row, j]), int(judged[row, j]))
                    for j in range(n)
                ]
            folder = self.tree / dataset / repo.split("/")[1] / revision / f"{begin}-{end}/beam"
            folder.mkdir(parents=True)
            (folder / "gen_config.yaml").write_text("cand_type: beam\nn_cand: 10\n")
            (folder / "beam_strs.pkl").write_bytes(pickle.dumps(beams))
            (folder / "beam_group_strs.pkl").write_bytes(pickle.dumps(groups))
            torch.save(scores, folder / "beam_lls.pt")
            torch.save(probabilities, folder / "beam_group_probs.pt")
            torch.save(judged, folder / "judge.pt")

    def rounded(self, confidence):
        """Return confidences, down to the next of the levels if there are any."""
        return np.floor(confidence * self.levels) / self.levels if self.levels else confidence

    def write_confidences(self, folder, prefix, top, dataset, span, *, shards=1):
        """Write one estimator's files; return its confidences by question index."""
        begin, end = span
        values = {
            i: float(np.float32(self.rounded(self.rng.random())))
            for i in range(begin, end)
            if i in top and i not in BLACKLIST[dataset]
        }
        (self.tree / folder).mkdir(parents=True, exist_ok=True)
        borders = np.linspace(begin, end, shards + 1).astype(int).tolist()
        for b, e in pairwise(borders):
            confs = torch.tensor([values.get(i, float("nan")) for i in range(b, e)])
            labels = torch.tensor([top[i][1] if i in values else -1 for i in range(b, e)])
            torch.save(
                {"confs": confs, "judge_labels": labels, "eval_range": (b, e)},
                self.tree / folder / f"{prefix}_{b}-{e}.pt",
            )
        return values

    def write_estimators(self, model, entry, dataset, splits):
        repo, test = entry["repo"].split("/")[1], splits["test"]
        earlier, evaluation = entry["earlier"], entry["evaluation"]
        revisions = {**earlier, **evaluation}
        last = list(earlier)[-1]
        has_train_split = "train_datasets" not in splits

        def adapter(train, trained_on, ending, seed):
            config = f"confidence_lora_{train}_acc_lr2e-4_bs16_5k{ending}"
            return f"{train}/{repo}/{'_'.join(trained_on)}/{config}/seed{seed}/epoch1"

        def write(key, folder, prefix, checkpoint, span=test, **options):
            self.numbers[(model, dataset, *key, checkpoint)] = self.write_confidences(
                folder, prefix, self.tops[model, dataset, checkpoint], dataset, span, **options
            )

        for train in splits.get("train_datasets", [dataset]):
            for estimator, (trained_on, ending) in ADAPTERS.items():
                if "_data" in estimator and not has_train_split:
                    continue
                for seed in SEEDS:
                    for checkpoint, revision in evaluation.items():
                        joint = {
                            "earlier": list(earlier.values()),
                            "last": [earlier[last]],
                            "evaluation": list(evaluation.values()),
                            "own": [revision],
                        }[trained_on]
                        folder = adapter(train, joint, ending, seed)
                        key = (train, estimator, seed)
                        prefix = f"pred_confs_{dataset}_{revision}"
                        write(key, folder, prefix, checkpoint, shards=seed - 16)
        if not has_train_split:
            return
        for seed in SEEDS:
            folder = adapter(dataset, earlier.values(), "_ncand2", seed)
            # Model a keeps the copied confidences under one name, model b under the other.
            kind = "pred_confs_surrogate" if model == "a" else "pred_confs"
            key = (dataset, "non_oracle_copy", seed)
            write(key, folder, f"{kind}_{dataset}_{earlier[last]}", last)
            for checkpoint, revision in evaluation.items():
                key = (dataset, "non_oracle_surrogate", seed)
                write(key, folder, f"pred_confs_surrogate_{dataset}_{revision}", checkpoint)
        for checkpoint, revision in revisions.items():
            folder = f"{dataset}/{repo}/gcm/GCM-Qwen3-8B-TriviaQA"
            prefix = f"pred_confs_gcm_{dataset}_{revision}"
            span = test if checkpoint in evaluation else splits["train"]
            write((dataset, "gcm", 0), folder, prefix, checkpoint, span)
        for checkpoint, revision in evaluation.items():
            folder = f"{dataset}/{repo}/sc_surrogate/{earlier[last]}"
            prefix = f"pred_confs_sc_surrogate_{dataset}_{revision}"
            write((dataset, "self_consistency_surrogate", 0), folder, prefix, checkpoint)
        for sets, recipe, ending in (
            ([(c,) for c in revisions], "transfer", ""),
            (pairwise(revisions), "transfer_random", "_ncand2_random"),
        ):
            for trained_on in sets:
                folder = adapter(dataset, [revisions[c] for c in trained_on], ending, 17)
                for checkpoint, revision in revisions.items():
                    # An adapter of one checkpoint is written already, where it is evaluated.
                    names = {(checkpoint,): "oracle_respective", (last,): "non_oracle_single"}
                    name = f"{names.get(trained_on)}_1answer"
                    earlier_numbers = self.numbers.get(
                        (model, dataset, dataset, name, 17, checkpoint)
                    )
                    key = (dataset, f"{recipe} {'+'.join(trained_on)}", 17)
                    if earlier_numbers is None:
                        write(key, folder, f"pred_confs_{dataset}_{revision}", checkpoint)
                    else:
                        self.numbers[(model, dataset, *key, checkpoint)] = earlier_numbers


def compress(content: bytes) -> bytes:
    """Compress with Zstandard."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


def write_digest(path):
    """Write the sha256 of the file `path` next to it."""
    path = Path(path)
    digest = path.with_name(f"{path.name}.sha256")
    digest.write_text(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    return digest


def pack(root, path):
    """Pack the folder `results` of `root` into the archive `path`, with its digest."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        tar.add(Path(root) / "results", "results")
    Path(path).write_bytes(compress(raw.getvalue()))
    return write_digest(path)


def tar_of(*members):
    """Return a tar of (name, content, attributes) members."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, content, attributes in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for key, value in attributes.items():
                setattr(member, key, value)
            tar.addfile(member, io.BytesIO(content))
    return raw.getvalue()


class Hostile:
    """Creates the file `sentinel` where it is unpickled."""

    def __init__(self, sentinel):
        self.sentinel = str(sentinel)

    def __reduce__(self):
        return os.system, (f"touch {self.sentinel}",)
