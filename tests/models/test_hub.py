"""Checkpoints from a Hub (one on this machine that speaks its protocol) and from folders."""

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
from resolve_checkpoint import resolve_checkpoint
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


def resolve(path, record, repo=REPO, revision="main", allow=False, beside=None):
    settings = {"repo": str(repo), "revision": revision, "record": str(record)}
    settings |= {"allow_identical_weights": allow, "beside_weights": beside or {}}
    execute(resolve_checkpoint, Job({}, {"revision": str(path)}, settings, threads=1))


def fetch(script, revision, record, **settings):
    outputs = {"checkpoint" if script is fetch_checkpoint else "adapter": str(record)}
    execute(script, Job({"revision": str(revision)}, outputs, settings, threads=1))


class Steps:
    """The two rules, on the paths that they have."""

    def __init__(self, folder):
        self.folder = folder

    def revision(self, name):
        return self.folder / "revisions" / "tiny" / f"{name}.json"

    def record(self, name):
        return self.folder / "checkpoints" / "tiny" / f"{name}.json"

    def resolve(self, name, repo=REPO, revision=None, allow=False):
        resolve(self.revision(name), self.record(name), repo, revision or name, allow)
        found = json.loads(self.revision(name).read_text())
        assert found.pop("allow_identical_weights") == allow
        assert found.pop("beside_weights") == {}
        return found

    def fetch(self, name, dtype=None):
        fetch(fetch_checkpoint, self.revision(name), self.record(name), dtype=dtype)
        return json.loads(self.record(name).read_text())


@pytest.fixture
def steps(tmp_path):
    return Steps(tmp_path)


def record_of(files, repo, revision, commit=None):
    small = {name: sha256(content) for name, content in files.items()}
    weights = {"model.safetensors": small.pop("model.safetensors")}
    about = {"repo": str(repo), "revision": revision, "commit": commit, "dtype": None}
    return {**about, "weights": weights, "files": small}


def test_a_cache_that_cannot_be_made_is_named(stub, steps, files, monkeypatch):
    stub.push(REPO, "step10", files[0])
    home = steps.folder / "home"
    home.write_text("a file, and no folder")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(home / "hub"))
    said = rf"{home}.* cannot be written \(.*\); set HF_HOME, or model_cache"
    with pytest.raises(DamagedFileError, match=said):
        steps.resolve("step10")


def test_fetch_downloads_what_is_needed_once(stub, steps, files, monkeypatch):
    extra = {
        "pytorch_model.bin": b"pickle",
        "modeling_tiny.py": b"raise SystemExit('remote code')",
        "README.md": b"about",
    }
    commit = stub.push(REPO, "step10", {**files[0], **extra})
    weights = sha256(files[0]["model.safetensors"])
    found = steps.resolve("step10")
    assert found == record_of(files[0], REPO, "step10", commit)
    assert not stub.downloads[weights]
    assert steps.fetch("step10", dtype="float32") == {**found, "dtype": "float32"}
    assert steps.fetch("step10", dtype=None) == found
    assert stub.downloads[weights] == 1
    assert not any(stub.downloads[sha256(content)] for content in extra.values())
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    assert steps.fetch("step10", dtype=None) == found  # without a connection


def sharded(files, n=2):
    """The weights of `files` as shards with an index."""
    tensors = load(files["model.safetensors"])
    groups = [dict(list(tensors.items())[i::n]) for i in range(n)]
    names = [f"model-{i + 1:05}-of-{n:05}.safetensors" for i in range(n)]
    weight_map = {key: name for name, group in zip(names, groups, strict=True) for key in group}
    rest = {name: content for name, content in files.items() if name != "model.safetensors"}
    shards = {
        name: save(group, {"format": "pt"}) for name, group in zip(names, groups, strict=True)
    }
    return {**rest, INDEX: json.dumps({"weight_map": weight_map}).encode()}, shards


def test_shards_are_those_of_the_index(stub, steps, files):
    rest, shards = sharded(files[0])
    stray = {"model-00001-of-00009.safetensors": b"of an aborted upload"}
    stub.push(REPO, "step10", {**rest, **shards, **stray})
    found = steps.resolve("step10")
    assert found["weights"] == {name: sha256(content) for name, content in shards.items()}
    steps.fetch("step10")
    assert all(stub.downloads[sha256(content)] == 1 for content in shards.values())
    assert stub.downloads[sha256(*stray.values())] == 0
    missing = sorted(shards)[1]
    stub.push(REPO, "step20", {n: c for n, c in {**rest, **shards}.items() if n != missing})
    with pytest.raises(DamagedFileError, match=rf"names the shard {missing}, which is not"):
        steps.resolve("step20")


def test_a_digest_that_the_hub_does_not_give_is_computed(stub, steps, files, monkeypatch):
    monkeypatch.setattr("hub_server.LARGE", re.compile("(?!)"))
    stub.push(REPO, "step10", files[0])
    weights = steps.resolve("step10")["weights"]
    assert weights == {"model.safetensors": sha256(files[0]["model.safetensors"])}


def test_identical_weights_are_refused_before_a_download(stub, steps, files):
    for name, content in [("a", files[0]), ("b", files[1]), ("c", files[0])]:
        stub.push(REPO, name, content)
        steps.resolve(name)
    for name, other in ("ac", "ca"):
        said = rf"{name} and {other} of tiny have all weights in .*allow_identical_weights"
        with pytest.raises(DamagedFileError, match=said):
            steps.fetch(name)
    assert not any(stub.downloads[sha256(c["model.safetensors"])] for c in files)
    steps.fetch("b")
    steps.resolve("c", allow=True)
    assert steps.fetch("a")["weights"] == steps.fetch("c")["weights"]


def test_the_same_weights_asked_otherwise_are_another_state(stub, steps, files):
    stub.push(REPO, "main", files[0])
    for name, beside in [("text", {}), ("chat", {"chat": "turns"})]:
        resolve(steps.revision(name), steps.record(name), beside=beside)
    assert steps.fetch("text") == {**steps.fetch("chat")}
    resolve(steps.revision("again"), steps.record("again"), beside={"chat": "turns"})
    with pytest.raises(DamagedFileError, match="again and chat of tiny have all weights in"):
        steps.fetch("again")


def test_a_shard_of_another_checkpoint_is_refused(stub, steps, files):
    for name, content in zip("ab", files, strict=True):
        rest, shards = sharded(content)
        shards["model-00002-of-00002.safetensors"] = b"the same"
        stub.push(REPO, name, {**rest, **shards})
        steps.resolve(name)
    said = r"b and a of tiny have model-00002-of-00002.safetensors in"
    with pytest.raises(DamagedFileError, match=said):
        steps.fetch("b")


def test_files_that_changed_under_results_are_refused(stub, steps, files):
    old = stub.push(REPO, "step10", files[0])
    steps.resolve("step10")
    record = steps.fetch("step10")
    stub.push(REPO, "step10", {**files[0], "README.md": b"new text, same weights"})
    steps.resolve("step10")
    other_text = {**files[0], "tokenizer.json": files[0]["tokenizer.json"] + b" "}
    for what, content in (("tokenizer.json", other_text), ("its weights", files[1])):
        stub.push(REPO, "step10", content)
        remedies = f"set its revision to {old} to keep them, or delete {steps.record('step10')}"
        told = f"has changed {what} since results were made; {remedies}"
        with pytest.raises(DamagedFileError, match=told):
            steps.resolve("step10")
    # another revision in the config is no change, and both remedies
    stub.push(REPO, "step11", files[1])
    assert steps.resolve("step10", revision="step11")["revision"] == "step11"
    assert steps.resolve("step10", revision=old)["weights"] == record["weights"]
    steps.record("step10").unlink()
    assert steps.resolve("step10")["weights"] != record["weights"]


def test_a_tokenizer_without_digits_is_refused_before_weights_are_downloaded(
    stub, steps, tmp_path
):
    content = checkpoint_files(tmp_path / "bad", normalizer=normalizers.Replace("7", "VII"))
    stub.push(REPO, "step10", content)
    steps.resolve("step10")
    with pytest.raises(ValueError, match=r"models--lab--tiny.*the digit '7'"):
        steps.fetch("step10")
    assert stub.downloads[sha256(content["model.safetensors"])] == 0
    assert not steps.record("step10").exists()


def test_a_damaged_file_in_the_cache_is_found(stub, steps, files):
    stub.push(REPO, "step10", files[0])
    found = Checkpoint(**steps.resolve("step10"))
    folder = hub.fetch_files(found, [*hub.SMALL_FILES, *found.weights])
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
def test_what_is_not_there_is_named_with_a_remedy(stub, steps, files, repo, revision, message):
    stub.push(REPO, "stage1-step100", files[0])
    for lost in ("config.json", "tokenizer.json"):
        stub.push(REPO, lost, {n: c for n, c in files[0].items() if n != lost})
    stub.push(REPO, "pickled", {"config.json": b"{}", "pytorch_model.bin": b"pickle"})
    with pytest.raises(DamagedFileError, match=message):
        steps.resolve("x", repo=repo, revision=revision)


def test_local_folders_work_the_same_way(steps, files, tmp_path):
    repo = tmp_path / "repo"
    for name, content in [("early", files[0]), ("late", files[1]), ("copy", files[0])]:
        (repo / name).mkdir(parents=True)
        for file, data in content.items():
            (repo / name / file).write_bytes(data)
    found = steps.resolve("early", repo=repo)
    assert steps.fetch("early") == found == record_of(files[0], repo / "early", "early")
    steps.resolve("late", repo=repo)
    steps.resolve("copy", repo=repo)
    with pytest.raises(DamagedFileError, match="copy and early of tiny have all weights"):
        steps.fetch("copy")
    (repo / "early" / "model.safetensors").write_bytes(files[1]["model.safetensors"])
    with pytest.raises(DamagedFileError, match="put the weights back to keep them, or delete"):
        steps.resolve("early", repo=repo)
    with pytest.raises(DamagedFileError, match=r"no revision 'latest'; .*: late"):
        steps.resolve("latest", repo=repo)


def test_a_mistyped_folder_is_told_from_a_repository(steps, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    (tmp_path / "models" / "mine").mkdir(parents=True)
    said = r"models/mien: there is no such folder, and the Hub did not answer .* there is a "
    said += r"folder models/mine; correct .* without HF_HUB_OFFLINE"
    with pytest.raises(DamagedFileError, match=said):
        steps.resolve("a", repo="models/mien")


def test_an_adapter_is_resolved_to_a_commit_and_stays_it(stub, files, tmp_path):
    """The rules resolve_adapter and fetch_adapter, while its branch moves."""
    about = {"peft_type": "LORA", "r": 2}
    pushed = [
        {
            "adapter_config.json": json.dumps(about).encode(),
            "adapter_model.safetensors": save({"a": torch.tensor(value)}),
        }
        for value in (1.0, 2.0)
    ]
    both = revision, record = tmp_path / "revision.json", tmp_path / "adapter.json"
    commit = stub.push(REPO, "main", pushed[0])
    resolve(*both)
    fetch(fetch_adapter, revision, record)
    found = Checkpoint.read(record)
    assert found.commit == commit
    assert list(found.files) == ["adapter_config.json"]
    stub.push(REPO, "main", {**pushed[0], "README.md": b"the same adapter"})
    resolve(*both)
    stub.push(REPO, "main", pushed[1])
    with pytest.raises(DamagedFileError, match=f"changed its weights .* revision to {commit}"):
        resolve(*both)
    more = json.dumps({**about, "lora_alpha": 99}).encode()
    stub.push(REPO, "main", {**pushed[0], "adapter_config.json": more})
    with pytest.raises(DamagedFileError, match=r"has changed adapter_config\.json since"):
        resolve(*both)
    stub.push(REPO, "main", files[0])
    record.unlink()
    resolve(*both)
    with pytest.raises(DamagedFileError, match=r"lab/tiny \(main\) is a whole model and no"):
        fetch(fetch_adapter, revision, record)
