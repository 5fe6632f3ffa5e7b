"""Checkpoints from a Hub (a stub server on this machine) and from folders."""

import hashlib
import json
import re
from pathlib import Path

import huggingface_hub
import pytest
import torch
from fetch_adapter import fetch_adapter
from fetch_checkpoint import fetch_checkpoint
from hub_server import StubHub
from pytest_httpserver import HTTPServer
from records import resolve
from safetensors.torch import load, save
from tiny_models import tiny_model, tiny_tokenizer
from tokenizers import normalizers

from persistcal.models import hub
from persistcal.models.checkpoint import INDEX, Checkpoint
from persistcal.store.files import DamagedFileError
from persistcal.store.jobs import Job, execute

REPO = "lab/tiny"


def checkpoint_files(folder, seed=0, normalizer=None):
    """Return the files of a tiny model."""
    tokenizer = tiny_tokenizer()
    if normalizer:
        tokenizer.backend_tokenizer.normalizer = normalizer
    for part in (tiny_model(seed=seed), tokenizer):
        part.save_pretrained(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return [checkpoint_files(tmp_path_factory.mktemp("tiny"), seed) for seed in range(2)]


@pytest.fixture(scope="module")
def server():
    with HTTPServer(threaded=True) as server:
        yield server


@pytest.fixture
def stub(server, monkeypatch, tmp_path):
    server.clear()
    stub = StubHub(server)
    constants = huggingface_hub.constants
    monkeypatch.setattr(constants, "ENDPOINT", stub.url)
    template = stub.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    return stub


def fetch(script, revision, record, **settings):
    outputs = {"checkpoint" if script is fetch_checkpoint else "adapter": str(record)}
    execute(script, Job({"revision": str(revision)}, outputs, settings, threads=1))


class Steps:
    """The two rules with the paths of the workflow."""

    def __init__(self, folder):
        self.folder = folder

    def revision(self, name):
        return self.folder / "revisions" / "tiny" / f"{name}.json"

    def record(self, name):
        return self.folder / "checkpoints" / "tiny" / f"{name}.json"

    def resolve(self, name, repo=REPO, revision=None, allow=False):
        paths = self.revision(name), self.record(name)
        resolve(*paths, repo, revision or name, allow_identical_weights=allow)
        resolved = json.loads(self.revision(name).read_text())
        assert resolved.pop("allow_identical_weights") == allow
        assert resolved.pop("beside_weights") == {}
        return resolved

    def fetch(self, name, dtype=None):
        fetch(fetch_checkpoint, self.revision(name), self.record(name), dtype=dtype)
        return json.loads(self.record(name).read_text())


@pytest.fixture
def steps(tmp_path):
    return Steps(tmp_path)


def record_of(files, repo, revision, commit=None):
    small = {name: sha256(content) for name, content in files.items()}
    weights = {"model.safetensors": small.pop("model.safetensors")}
    origin = {"repo": str(repo), "revision": revision, "commit": commit, "dtype": None}
    return {**origin, "weights": weights, "files": small}


def test_a_read_only_cache_is_refused_with_a_remedy(stub, steps, files, monkeypatch):
    stub.push(REPO, "step10", files[0])
    home = steps.folder / "home"
    home.write_text("a file instead of a folder")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(home / "hub"))
    message = rf"{home}.* cannot be written \(.*\); set HF_HOME, or model_cache"
    with pytest.raises(DamagedFileError, match=message):
        steps.resolve("step10")


def test_only_needed_files_are_downloaded_and_only_once(stub, steps, files, monkeypatch):
    extra = {
        "pytorch_model.bin": b"pickle",
        "modeling_tiny.py": b"raise SystemExit('remote code')",
        "README.md": b"about",
    }
    commit = stub.push(REPO, "step10", {**files[0], **extra})
    weights = sha256(files[0]["model.safetensors"])
    resolved = steps.resolve("step10")
    assert resolved == record_of(files[0], REPO, "step10", commit)
    assert not stub.downloads[weights]
    assert steps.fetch("step10", dtype="float32") == {**resolved, "dtype": "float32"}
    assert steps.fetch("step10", dtype=None) == resolved
    assert stub.downloads[weights] == 1
    assert not any(stub.downloads[sha256(content)] for content in extra.values())
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    assert steps.fetch("step10", dtype=None) == resolved  # without a connection


def split_into_shards(files, n=2):
    """Return the other files with an index, and the weights as shards."""
    tensors = load(files["model.safetensors"])
    groups = [dict(list(tensors.items())[i::n]) for i in range(n)]
    names = [f"model-{i + 1:05}-of-{n:05}.safetensors" for i in range(n)]
    weight_map = {key: name for name, group in zip(names, groups, strict=True) for key in group}
    rest = {name: content for name, content in files.items() if name != "model.safetensors"}
    shards = {
        name: save(group, {"format": "pt"}) for name, group in zip(names, groups, strict=True)
    }
    return {**rest, INDEX: json.dumps({"weight_map": weight_map}).encode()}, shards


def test_only_the_shards_of_the_index_are_downloaded(stub, steps, files):
    rest, shards = split_into_shards(files[0])
    stray = {"model-00001-of-00009.safetensors": b"of an aborted upload"}
    stub.push(REPO, "step10", {**rest, **shards, **stray})
    resolved = steps.resolve("step10")
    assert resolved["weights"] == {name: sha256(content) for name, content in shards.items()}
    steps.fetch("step10")
    assert all(stub.downloads[sha256(content)] == 1 for content in shards.values())
    assert stub.downloads[sha256(*stray.values())] == 0
    missing = sorted(shards)[1]
    stub.push(REPO, "step20", {n: c for n, c in {**rest, **shards}.items() if n != missing})
    with pytest.raises(DamagedFileError, match=rf"names the shard {missing}, which is not"):
        steps.resolve("step20")


def test_a_digest_that_the_hub_lacks_is_computed(stub, steps, files, monkeypatch):
    monkeypatch.setattr("hub_server.LARGE", re.compile("(?!)"))
    stub.push(REPO, "step10", files[0])
    weights = steps.resolve("step10")["weights"]
    assert weights == {"model.safetensors": sha256(files[0]["model.safetensors"])}


def test_identical_weights_are_refused_before_a_download(stub, steps, files):
    for name, content in [("a", files[0]), ("b", files[1]), ("c", files[0])]:
        stub.push(REPO, name, content)
        steps.resolve(name)
    for name, duplicate in ("ac", "ca"):
        message = (
            rf"{name} and {duplicate} of tiny have all weights in .*allow_identical_weights"
        )
        with pytest.raises(DamagedFileError, match=message):
            steps.fetch(name)
    assert not any(stub.downloads[sha256(c["model.safetensors"])] for c in files)
    steps.fetch("b")
    steps.resolve("c", allow=True)
    assert steps.fetch("a")["weights"] == steps.fetch("c")["weights"]


def test_the_same_weights_with_another_chat_are_another_checkpoint(stub, steps, files):
    stub.push(REPO, "main", files[0])
    for name, further in [("text", {}), ("chat", {"chat": "turns"})]:
        resolve(steps.revision(name), steps.record(name), REPO, beside_weights=further)
    assert steps.fetch("text") == {**steps.fetch("chat")}
    paths = steps.revision("again"), steps.record("again")
    resolve(*paths, REPO, beside_weights={"chat": "turns"})
    with pytest.raises(DamagedFileError, match="again and chat of tiny have all weights in"):
        steps.fetch("again")


def test_a_shard_of_another_checkpoint_is_refused(stub, steps, files):
    for name, content in zip("ab", files, strict=True):
        rest, shards = split_into_shards(content)
        shards["model-00002-of-00002.safetensors"] = b"the same"
        stub.push(REPO, name, {**rest, **shards})
        steps.resolve(name)
    message = r"b and a of tiny have model-00002-of-00002.safetensors in"
    with pytest.raises(DamagedFileError, match=message):
        steps.fetch("b")


def test_files_that_changed_after_results_were_made_are_refused(stub, steps, files):
    old = stub.push(REPO, "step10", files[0])
    steps.resolve("step10")
    record = steps.fetch("step10")
    stub.push(REPO, "step10", {**files[0], "README.md": b"new text, same weights"})
    steps.resolve("step10")
    other_text = {**files[0], "tokenizer.json": files[0]["tokenizer.json"] + b" "}
    for changed, content in (("tokenizer.json", other_text), ("its weights", files[1])):
        stub.push(REPO, "step10", content)
        remedies = f"set its revision to {old} to keep them, or delete {steps.record('step10')}"
        message = f"has changed {changed} since results were made; {remedies}"
        with pytest.raises(DamagedFileError, match=message):
            steps.resolve("step10")
    # Another revision in the config is not a change; then the two remedies.
    stub.push(REPO, "step11", files[1])
    assert steps.resolve("step10", revision="step11")["revision"] == "step11"
    assert steps.resolve("step10", revision=old)["weights"] == record["weights"]
    steps.record("step10").unlink()
    assert steps.resolve("step10")["weights"] != record["weights"]


def test_a_tokenizer_without_digits_is_refused_before_the_download(stub, steps, tmp_path):
    content = checkpoint_files(tmp_path / "bad", normalizer=normalizers.Replace("7", "VII"))
    stub.push(REPO, "step10", content)
    steps.resolve("step10")
    with pytest.raises(ValueError, match=r"models--lab--tiny.*the digit '7'"):
        steps.fetch("step10")
    assert stub.downloads[sha256(content["model.safetensors"])] == 0
    assert not steps.record("step10").exists()


def test_a_damaged_file_in_the_cache_is_refused(stub, steps, files):
    stub.push(REPO, "step10", files[0])
    checkpoint = Checkpoint(**steps.resolve("step10"))
    folder = hub.fetch_files(checkpoint, [*hub.SMALL_FILES, *checkpoint.weights])
    blob = Path(folder, "model.safetensors").resolve()
    blob.write_bytes(bytes(len(blob.read_bytes())))
    with pytest.raises(DamagedFileError, match=r"model\.safetensors is not the file .*delete"):
        steps.fetch("step10")


@pytest.mark.parametrize(
    ("repo", "revision", "message"),
    [
        (REPO, "stage1-step1000", "no revision 'stage1-step1000'; .*: stage1-step100"),
        (
            "lab/other",
            "step10",
            "lab/other is neither a folder nor .* correct the model's repo",
        ),
        ("no/such/folder", "step10", "no/such/folder is neither a folder nor"),
        (REPO, "pickled", r"lab/tiny \(pickled\) has neither model.safetensors nor .* save"),
        (REPO, "config.json", r"lab/tiny \(config.json\) has no config.json; put it there"),
        (
            REPO,
            "tokenizer.json",
            r"has no tokenizer \(tokenizer.json, .*\); put the model's there",
        ),
    ],
)
def test_what_a_repository_lacks_is_named(stub, steps, files, repo, revision, message):
    stub.push(REPO, "stage1-step100", files[0])
    for missing in ("config.json", "tokenizer.json"):
        stub.push(REPO, missing, {n: c for n, c in files[0].items() if n != missing})
    stub.push(REPO, "pickled", {"config.json": b"{}", "pytorch_model.bin": b"pickle"})
    with pytest.raises(DamagedFileError, match=message):
        steps.resolve("x", repo=repo, revision=revision)


def test_local_folders_are_resolved_like_repositories(steps, files, tmp_path):
    repo = tmp_path / "repo"
    for name, content in [("early", files[0]), ("late", files[1]), ("copy", files[0])]:
        (repo / name).mkdir(parents=True)
        for file, data in content.items():
            (repo / name / file).write_bytes(data)
    resolved = steps.resolve("early", repo=repo)
    assert steps.fetch("early") == resolved == record_of(files[0], repo / "early", "early")
    steps.resolve("late", repo=repo)
    steps.resolve("copy", repo=repo)
    with pytest.raises(DamagedFileError, match="copy and early of tiny have all weights"):
        steps.fetch("copy")
    (repo / "early" / "model.safetensors").write_bytes(files[1]["model.safetensors"])
    with pytest.raises(DamagedFileError, match="put the weights back to keep them, or delete"):
        steps.resolve("early", repo=repo)
    with pytest.raises(DamagedFileError, match=r"no revision 'latest'; .*: late"):
        steps.resolve("latest", repo=repo)


def test_a_mistyped_folder_is_refused_with_the_similar_one(steps, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    (tmp_path / "models" / "mine").mkdir(parents=True)
    message = r"models/mien: there is no such folder, and the Hub did not answer .* there is a "
    message += r"folder models/mine; correct .* without HF_HUB_OFFLINE"
    with pytest.raises(DamagedFileError, match=message):
        steps.resolve("a", repo="models/mien")


def test_an_adapter_stays_at_its_commit_while_the_branch_moves(stub, files, tmp_path):
    config = {"peft_type": "LORA", "r": 2}
    pushed = [
        {
            "adapter_config.json": json.dumps(config).encode(),
            "adapter_model.safetensors": save({"a": torch.tensor(value)}),
        }
        for value in (1.0, 2.0)
    ]
    revision, record = tmp_path / "revision.json", tmp_path / "adapter.json"
    commit = stub.push(REPO, "main", pushed[0])
    resolve(revision, record, REPO)
    fetch(fetch_adapter, revision, record)
    adapter = Checkpoint.read(record)
    assert adapter.commit == commit
    assert list(adapter.files) == ["adapter_config.json"]

    stub.push(REPO, "main", {**pushed[0], "README.md": b"the same adapter"})
    resolve(revision, record, REPO)
    stub.push(REPO, "main", pushed[1])
    with pytest.raises(DamagedFileError, match=f"changed its weights .* revision to {commit}"):
        resolve(revision, record, REPO)

    more = json.dumps({**config, "lora_alpha": 99}).encode()
    stub.push(REPO, "main", {**pushed[0], "adapter_config.json": more})
    with pytest.raises(DamagedFileError, match=r"has changed adapter_config\.json since"):
        resolve(revision, record, REPO)

    stub.push(REPO, "main", files[0])
    record.unlink()
    resolve(revision, record, REPO)
    with pytest.raises(DamagedFileError, match=r"lab/tiny \(main\) is a whole model and no"):
        fetch(fetch_adapter, revision, record)
