"""The checkpoints of atlas that come with the repository, and how damaged ones are refused."""

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
SHIPPED = ROOT / "resources" / "atlas"
REVISIONS = ["p10", "p20", "p30", "p40", "p50", "p90", "p100", "verifier"]
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 2761880\n"


def test_what_ships_is_small_whole_and_in_float16():
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*")) < 24e6
    listed = [line.split()[1] for line in (SHIPPED / "SHA256SUMS").read_text().splitlines()]
    assert sorted(listed) == sorted(
        str(path.relative_to(SHIPPED)) for path in SHIPPED.glob("*/*")
    )
    found = {name: resolve_revision(str(SHIPPED), name) for name in REVISIONS}
    for name in REVISIONS:
        weights = load_file(SHIPPED / name / "model.safetensors")
        assert {weight.dtype for weight in weights.values()} == {torch.float16}
        assert sum(weight.numel() for weight in weights.values()) == 1_378_432
    tokenizers = {found[name].files["tokenizer.json"] for name in REVISIONS[:-1]}
    assert len(tokenizers) == 1


@pytest.fixture
def repo(tmp_path):
    """A copy of two of the checkpoints that ship."""
    for name in ("p10", "p20"):
        shutil.copytree(SHIPPED / name, tmp_path / "atlas" / name)
    shutil.copy(SHIPPED / "SHA256SUMS", tmp_path / "atlas")
    return tmp_path / "atlas"


def cut(path):
    path.write_bytes(path.read_bytes()[:-1000])


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def point(path):
    path.write_text(POINTER)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut, r"is not the file that .*SHA256SUMS lists \(SHA-256 \w{64}\); get it again; in"),
        (flip, r"is not the file that .*SHA256SUMS lists"),
        (Path.unlink, r"which .*SHA256SUMS lists, is missing; .*`git checkout -- "),
        (point, r"is a pointer of Git LFS .*`git lfs pull`"),
    ],
)
def test_a_damaged_weight_file_is_refused_with_a_remedy(repo, damage, said):
    path = repo / "p20" / "model.safetensors"
    damage(path)
    assert resolve_revision(str(repo), "p10").weights
    with pytest.raises(DamagedFileError, match=rf"^{path},? {said}") as error:
        resolve_revision(str(repo), "p20")
    assert "\n" not in str(error.value)


def test_a_cut_list_of_digests_is_refused_and_a_pointer_without_a_list(repo):
    digests = repo / "SHA256SUMS"
    digests.write_text("\n".join(digests.read_text().splitlines()[:4])[:-30])
    with pytest.raises(DamagedFileError, match=r"SHA256SUMS: line 4 is not a SHA-256"):
        resolve_revision(str(repo), "p20")
    digests.unlink()
    point(repo / "p20" / "model.safetensors")
    with pytest.raises(DamagedFileError, match=r"safetensors is a pointer of Git LFS"):
        resolve_revision(str(repo), "p20")


def keep(model, results, name):
    """Save a model where the rules do, with its record."""
    folder, record = results / "pretrained" / name, results / "checkpoints" / f"{name}.json"
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    record.parent.mkdir(parents=True)
    write_record(folder, record)


def test_an_export_is_the_rounded_checkpoint(tmp_path):
    """Weights come back as float32 rounded to float16, with tokenizer, config and digests."""
    results = tmp_path / "results"
    keep(tiny_model(seed=3), results, "atlas/p10")
    keep(tiny_model(seed=4), results, "atlas-verifier/p100")
    export(results, tmp_path / "atlas")
    for revision, record in (("p10", "atlas/p10"), ("verifier", "atlas-verifier/p100")):
        before = Checkpoint.read(results / "checkpoints" / f"{record}.json")
        weights = {name: w.half() for name, w in open_model(before).state_dict().items()}
        after = resolve_revision(str(tmp_path / "atlas"), revision)
        model = open_model(after)
        assert model.dtype == torch.float32  # the CPU's
        for name, weight in model.state_dict().items():
            assert torch.equal(weight, weights[name].float())
        text = "Which country is Oslo in?"
        assert open_tokenizer(after).encode(text) == open_tokenizer(before).encode(text)
        config = json.loads((tmp_path / "atlas" / revision / "config.json").read_text())
        assert config["dtype"] == "float16"


def test_numbers_beyond_float16_are_refused(tmp_path):
    model = tiny_model()
    model.model.norm.weight.data[0] = 70_000.0
    keep(model, tmp_path / "results", "atlas/p10")
    with pytest.raises(SystemExit, match=r"model\.norm\.weight has numbers too large"):
        export(tmp_path / "results", tmp_path / "atlas")
    with pytest.raises(SystemExit, match="make them with `make pretrain`"):
        export(tmp_path, tmp_path / "atlas")
