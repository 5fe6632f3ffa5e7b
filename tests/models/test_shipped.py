"""Checkpoints of atlas in the repository, and refusals of damaged ones."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from records import write_record
from safetensors.torch import load_file
from tiny_models import tiny_model, tiny_tokenizer

from persistcal.models.checkpoint import Checkpoint
from persistcal.models.hub import resolve_revision
from persistcal.models.load import open_model, open_tokenizer
from persistcal.store.files import DamagedFileError
from tools.export_checkpoints import export

ROOT = Path(__file__).parents[2]
ATLAS = ROOT / "resources" / "atlas"
REVISIONS = ["p10", "p20", "p30", "p40", "p50", "p90", "p100", "verifier"]
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 2761880\n"


def test_shipped_checkpoints_are_complete_small_and_in_float16():
    assert sum(path.stat().st_size for path in ATLAS.rglob("*")) < 24e6
    listed = [line.split()[1] for line in (ATLAS / "SHA256SUMS").read_text().splitlines()]
    assert sorted(listed) == sorted(str(path.relative_to(ATLAS)) for path in ATLAS.glob("*/*"))
    resolved = {name: resolve_revision(str(ATLAS), name) for name in REVISIONS}
    for name in REVISIONS:
        weights = load_file(ATLAS / name / "model.safetensors")
        assert {weight.dtype for weight in weights.values()} == {torch.float16}
        assert sum(weight.numel() for weight in weights.values()) == 1_378_432
    tokenizers = {resolved[name].files["tokenizer.json"] for name in REVISIONS[:-1]}
    assert len(tokenizers) == 1


@pytest.fixture
def repo(tmp_path):
    """Copy two of the shipped checkpoints."""
    for name in ("p10", "p20"):
        shutil.copytree(ATLAS / name, tmp_path / "atlas" / name)
    shutil.copy(ATLAS / "SHA256SUMS", tmp_path / "atlas")
    return tmp_path / "atlas"


def cut_end(path):
    path.write_bytes(path.read_bytes()[:-1000])


def flip_bit(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def replace_by_pointer(path):
    path.write_text(POINTER)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            cut_end,
            r"is not the file that .*SHA256SUMS lists \(SHA-256 \w{64}\); get it again; in",
        ),
        (flip_bit, r"is not the file that .*SHA256SUMS lists"),
        (Path.unlink, r"which .*SHA256SUMS lists, is missing; .*`git checkout -- "),
        (replace_by_pointer, r"is a pointer of Git LFS .*`git lfs pull`"),
    ],
)
def test_a_damaged_weight_file_is_refused_with_a_remedy(repo, damage, message):
    path = repo / "p20" / "model.safetensors"
    damage(path)
    assert resolve_revision(str(repo), "p10").weights
    with pytest.raises(DamagedFileError, match=rf"^{path},? {message}") as error:
        resolve_revision(str(repo), "p20")
    assert "\n" not in str(error.value)


def test_a_cut_list_of_digests_and_a_pointer_without_a_list_are_refused(repo):
    digests = repo / "SHA256SUMS"
    digests.write_text("\n".join(digests.read_text().splitlines()[:4])[:-30])
    with pytest.raises(DamagedFileError, match=r"SHA256SUMS: line 4 is not a SHA-256"):
        resolve_revision(str(repo), "p20")
    digests.unlink()
    replace_by_pointer(repo / "p20" / "model.safetensors")
    with pytest.raises(DamagedFileError, match=r"safetensors is a pointer of Git LFS"):
        resolve_revision(str(repo), "p20")


def save_with_record(model, results, name):
    """Save a model and its record at the paths of the rules."""
    folder, record = results / "pretrained" / name, results / "checkpoints" / f"{name}.json"
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    record.parent.mkdir(parents=True)
    write_record(folder, record)


def test_an_export_is_the_checkpoint_rounded_to_float16(tmp_path):
    """Weights are rounded to float16 and loaded as float32; tokenizer and config are kept."""
    results = tmp_path / "results"
    save_with_record(tiny_model(seed=3), results, "atlas/p10")
    save_with_record(tiny_model(seed=4), results, "atlas-verifier/p100")
    export(results, tmp_path / "atlas")
    for revision, record in (("p10", "atlas/p10"), ("verifier", "atlas-verifier/p100")):
        original = Checkpoint.read(results / "checkpoints" / f"{record}.json")
        weights = {name: w.half() for name, w in open_model(original).state_dict().items()}
        exported = resolve_revision(str(tmp_path / "atlas"), revision)
        model = open_model(exported)
        assert model.dtype == torch.float32  # on a CPU
        for name, weight in model.state_dict().items():
            assert torch.equal(weight, weights[name].float())
        text = "Which country is Oslo in?"
        assert open_tokenizer(exported).encode(text) == open_tokenizer(original).encode(text)
        config = json.loads((tmp_path / "atlas" / revision / "config.json").read_text())
        assert config["dtype"] == "float16"


def test_an_export_of_numbers_beyond_float16_is_refused(tmp_path):
    model = tiny_model()
    model.model.norm.weight.data[0] = 70_000.0
    save_with_record(model, tmp_path / "results", "atlas/p10")
    with pytest.raises(SystemExit, match=r"model\.norm\.weight has numbers too large"):
        export(tmp_path / "results", tmp_path / "atlas")
    with pytest.raises(SystemExit, match="make them with `make pretrain`"):
        export(tmp_path, tmp_path / "atlas")
