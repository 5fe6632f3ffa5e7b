"""The authors' released results as tables: all numbers, missing files, refused files."""

import logging
import pickle
import shutil
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from isotonic_by_hand import pool_adjacent_violators, slowly_interpolated
from release_archive import (
    BLACKLIST,
    DATASETS,
    MODELS,
    SEEDS,
    SHARDS,
    SKIPPED,
    Hostile,
    Release,
    compress,
    pack,
    tar_of,
    write_digest,
)
from release_import import RECIPES, run_import, tables_of

from reproduce.release_files import (
    UNKNOWN,
    ArchiveError,
    ReleaseError,
    UnsafeFileError,
    read_candidates,
    read_confidences,
)

SMALL = ({"b": MODELS["b"]}, {"jeop": DATASETS["jeop"]})
FOLDER_OF_B = "jeop/model-b"
TEN = range(10)  # beams
CONFIG = "confidence_lora_jeop_acc_lr2e-4_bs16_5k"
COPIED = "pred_confs_jeop_early-ocelot_60-100.pt"
PREFIX = "pred_confs_jeop_phoenix"


@pytest.fixture(scope="module", params=["small", pytest.param("full", marks=pytest.mark.slow)])
def imported_release(tmp_path_factory, request):
    """Return a release, its models and datasets, and its tables."""
    if request.param == "small":
        release, parts = request.getfixturevalue("small_tree"), SMALL
    else:
        parts = MODELS, DATASETS
        release = Release(tmp_path_factory.mktemp("release"), *parts)
    return release, *parts, tables_of(release.tree, *parts)


def by_question(frame):
    index = frame["question_id"].str.rsplit("-", n=1).str[1].astype(int)
    return dict(zip(index, frame["confidence"], strict=True))


def evaluated_answers(release, model, dataset, checkpoint, split="test"):
    """Return {index: (probability, label)} of the questions that are not blacklisted."""
    begin, end = DATASETS[dataset][split]
    return {
        index: top
        for index, top in release.tops[model, dataset, checkpoint].items()
        if begin <= index < end and index not in BLACKLIST[dataset]
    }


def expected_predictions(release, model, dataset):
    """Return {(train_dataset, estimator, seed, checkpoint): {index: confidence}}."""
    model_settings, has_training = MODELS[model], "train" in DATASETS[dataset]
    evaluation, last = list(model_settings["evaluation"]), list(model_settings["earlier"])[-1]
    asked = {c: evaluated_answers(release, model, dataset, c) for c in evaluation}
    expected = {}
    for (m, d, *key, checkpoint), values in release.numbers.items():
        if (m, d) == (model, dataset) and checkpoint in evaluation and "trans" not in key[1]:
            expected[*key, checkpoint] = values
    for time, c in enumerate(evaluation):
        chance = time / (len(evaluation) - 1)
        expected[dataset, "end_correct", 0, c] = dict.fromkeys(asked[c], chance)
        expected[dataset, "self_consistency", 0, c] = {i: p for i, (p, _) in asked[c].items()}
        copied_tops = release.tops[model, dataset, last]
        expected[dataset, "self_consistency_copy", 0, c] = {
            i: copied_tops.get(i, (0.0, None))[0] for i in asked[c]
        }
        if not has_training:
            continue
        for seed in SEEDS:
            copied = release.numbers[model, dataset, dataset, "non_oracle_copy", seed, last]
            expected[dataset, "non_oracle_copy", seed, c] = {
                i: copied.get(i, 0.0) for i in asked[c]
            }
        train = {
            e: evaluated_answers(release, model, dataset, e, "train")
            for e in model_settings["earlier"]
        }
        correct = [label == 1 for top in train.values() for _, label in top.values()]
        for estimator, stated in (
            ("self_consistency", [p for top in train.values() for p, _ in top.values()]),
            ("gcm", [release.numbers[model, dataset, dataset, "gcm", 0, e][i]
                     for e, top in train.items() for i in top]),
        ):  # fmt: skip
            raw = expected[dataset, estimator, 0, c]
            knots = pool_adjacent_violators(stated, correct)
            fitted = {i: slowly_interpolated(knots, p) for i, p in raw.items()}
            expected[dataset, f"{estimator}_posthoc", 0, c] = fitted
    return expected


def test_predictions_contain_every_number_of_the_release(imported_release):
    release, models, datasets, tables = imported_release
    keys = ["train_dataset", "estimator", "seed", "checkpoint"]
    for model, dataset in product(models, datasets):
        frame = tables["predictions", model, dataset]
        expected = expected_predictions(release, model, dataset)
        imported_values = {key: by_question(part) for key, part in frame.groupby(keys)}
        assert imported_values.keys() == expected.keys()
        for key, values in expected.items():
            assert imported_values[key].keys() == values.keys(), key
            assert imported_values[key] == pytest.approx(values, abs=1e-9), key
        for checkpoint, part in frame.groupby("checkpoint"):
            tops = release.tops[model, dataset, checkpoint]
            index = part["question_id"].str.rsplit("-", n=1).str[1].astype(int)
            assert part["correct"].tolist() == [tops[i][1] == 1 for i in index]
            answers = tables["answers", model, dataset, checkpoint]
            right = dict(zip(part["question_id"], part["correct"], strict=True))
            assert dict(zip(answers["question_id"], answers["correct"], strict=True)) == right


def test_scores_contain_both_transfer_matrices(imported_release):
    release, models, datasets, tables = imported_release
    for (model, settings), dataset in product(models.items(), datasets):
        checkpoints = [*settings["earlier"], *settings["evaluation"]]
        has_training = "train" in datasets[dataset]
        for checkpoint in checkpoints:
            place = ("scores", model, dataset, checkpoint, "transfer")
            frames = [tables[*place, recipe] for recipe in RECIPES]
            if not has_training:
                assert all(frame.empty for frame in frames)
                continue
            assert [set(frame["recipe"]) for frame in frames] == [{r} for r in RECIPES]
            frame = pd.concat(frames)
            assert set(frame["answers_of"]) == {checkpoint}
            groups = list(frame.groupby(["recipe", "trained_on", "train_dataset", "seed"]))
            assert len(groups) == 2 * len(checkpoints) - 1
            for (recipe, trained_on, train, seed), part in groups:
                key = (model, dataset, train, f"{recipe} {trained_on}", seed, checkpoint)
                assert by_question(part) == pytest.approx(release.numbers[key])


def test_candidates_become_tables_of_beams_clusters_and_labels(imported_release):
    release, models, datasets, tables = imported_release
    for (model, settings), dataset in product(models.items(), datasets):
        for checkpoint in [*settings["earlier"], *settings["evaluation"]]:
            beams = tables["beams", model, dataset, checkpoint]
            asked = [i for b, e in SHARDS[dataset] for i in range(b, e)]
            kept = [i for i in asked if (model, dataset, checkpoint, i) not in SKIPPED]
            names = [f"{dataset}-{i}" for i in kept for _ in TEN]
            assert beams["question_id"].tolist() == names
            assert beams["text"].tolist() == [f" {i}?{b}\n" for i in kept for b in TEN]
            assert (beams["logprob"] < 0).all()
            clusters = tables["clusters", model, dataset, checkpoint]
            labels = tables["labels", model, dataset, checkpoint]
            assert set(labels["source"]) == {"release"}
            labels = labels.set_index(["question_id", "cluster"])["label"]
            written = {
                f"{dataset}-{key[3]}": rows
                for key, rows in release.clusters.items()
                if key[:3] == (model, dataset, checkpoint)
            }
            assert set(clusters["question_id"]) == set(written)
            for name, part in clusters.groupby("question_id"):
                # An unjudged top cluster is last, because the authors predict the next one.
                rows = sorted(written[name], key=lambda row: (row[2] == -1, -row[1]))
                assert part["cluster"].tolist() == list(range(len(rows)))
                assert [list(members) for members in part["members"]] == [r[0] for r in rows]
                assert part["answer"].tolist() == [r[0][0] for r in rows]
                assert part["probability"].tolist() == pytest.approx([r[1] for r in rows])
                given = [labels.get((name, j)) for j in part["cluster"]]
                names = {1: "correct", 2: "incorrect", 3: "not_attempted", -1: None}
                assert given == [names[r[2]] for r in rows]


def test_blacklisted_questions_are_excluded(imported_release):
    _, _, datasets, tables = imported_release
    for dataset, settings in datasets.items():
        questions = tables["questions", dataset]
        assert set(questions.loc[questions["excluded"], "index"]) == BLACKLIST[dataset]
        splits = questions.groupby("split")["index"].agg(list).to_dict()
        assert splits == {
            s: list(range(*settings[s])) for s in ("train", "test") if s in settings
        }
        first = questions.iloc[0]
        assert first["question_id"] == f"{dataset}-0" and first["question"] == ""


@pytest.fixture(scope="module")
def small_tree(tmp_path_factory):
    return Release(tmp_path_factory.mktemp("small"), *SMALL)


@pytest.fixture
def small_release(small_tree, tmp_path):
    """Copy the tree of a small release."""
    return shutil.copytree(small_tree.tree, tmp_path / "results" / "conset")


def import_packed(tree):
    """Import a tree from an archive, as the workflow does."""
    root = tree.parents[1]
    digest = pack(root, root / "release.tar.zst")
    return run_import(root / "out", root / "release.tar.zst", digest, *SMALL)


ESTIMATORS = {
    "end_correct", "self_consistency", "self_consistency_posthoc", "self_consistency_copy",
    "self_consistency_surrogate", "gcm", "gcm_posthoc", "non_oracle", "non_oracle_1answer",
    "non_oracle_single", "non_oracle_single_1answer", "non_oracle_surrogate",
    "non_oracle_copy", "oracle", "oracle_1answer", "oracle_respective",
    "oracle_respective_1answer", "oracle_single_data", "oracle_pooled_data",
}  # fmt: skip


@pytest.mark.parametrize(
    ("absent", "lost", "listed"),
    [
        ([f"{FOLDER_OF_B}/gcm", f"{FOLDER_OF_B}/sc_surrogate"],
         {"gcm", "gcm_posthoc", "self_consistency_surrogate"}, 4 + 2),
        # labels of kestrel's training answers are in two places, and both are missing
        ([f"{FOLDER_OF_B}/gcm/GCM-Qwen3-8B-TriviaQA/pred_confs_gcm_jeop_kestrel_0-24.pt",
          f"{FOLDER_OF_B}/kestrel/0-24/beam/judge.pt",
          f"{FOLDER_OF_B}/phoenix_deeper-starling/{CONFIG}_ncand2_onedata"],
         {"gcm_posthoc", "self_consistency_posthoc", "oracle_single_data"}, 1 + 1 + 6),
        ([f"{FOLDER_OF_B}/phoenix/{CONFIG}_ncand2", *(
            f"{FOLDER_OF_B}/kestrel_early-ocelot/{CONFIG}_ncand2/seed{seed}/epoch1/{COPIED}"
            for seed in SEEDS)], {"oracle_respective", "non_oracle_copy"}, 3 + 3),
        ([f"{FOLDER_OF_B}/phoenix/60-80"], {"self_consistency", "self_consistency_posthoc"}, 1),
        ([f"{FOLDER_OF_B}/early-ocelot/60-80", f"{FOLDER_OF_B}/kestrel/0-24"],
         {"self_consistency_copy", "self_consistency_posthoc"}, 1 + 1),
    ],
)  # fmt: skip
def test_a_missing_file_costs_the_estimators_that_need_it(small_release, absent, lost, listed):
    for path in absent:
        path = small_release / path
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    tables = tables_of(small_release, *SMALL)
    missing = tables["missing",]
    assert set(tables["predictions", "b", "jeop"]["estimator"]) == ESTIMATORS - lost
    assert len(missing) == listed
    prefixes = tuple(path.removesuffix(".pt").rsplit("/", 1)[0] for path in absent)
    assert all(path.startswith(prefixes) for path in missing["path"])
    assert set(missing["model"]) == {"b"} and set(missing["dataset"]) == {"jeop"}


def test_a_seed_with_a_gap_is_left_out_and_labels_can_come_from_confidence_files(small_release):
    folder = f"{FOLDER_OF_B}/phoenix_deeper-starling/{CONFIG}_ncand2/seed19/epoch1"
    gap = f"{folder}/{PREFIX}_73-86.pt"  # seed 19 has three shards: 60-73, 73-86, 86-100
    judged = f"{FOLDER_OF_B}/phoenix/60-80/beam/judge.pt"
    for path in (gap, judged):
        (small_release / path).unlink()
    tables = tables_of(small_release, *SMALL)
    assert tables["missing",].values.tolist() == [
        ["b", "jeop", "candidates", "phoenix", judged],
        ["b", "jeop", "oracle", "phoenix", gap],
    ]
    frame = tables["predictions", "b", "jeop"]
    assert set(frame["estimator"]) == ESTIMATORS
    assert set(frame.loc[frame["estimator"] == "oracle", "seed"]) == {17, 18}


def test_a_model_without_answers_of_a_checkpoint_has_no_predictions(small_release):
    for path in small_release.rglob("*phoenix*.pt"):
        path.unlink()
    shutil.rmtree(small_release / FOLDER_OF_B / "phoenix")
    tables = tables_of(small_release, *SMALL)
    assert tables["predictions", "b", "jeop"].empty
    assert {"candidates", "oracle"} < set(tables["missing",]["estimator"])


def test_a_model_without_any_file_is_refused(small_release):
    models = {"b": MODELS["b"], "a": MODELS["a"]}
    with pytest.raises(ReleaseError, match=r"nothing about org/Model-A on jeop; check .* repo"):
        tables_of(small_release, models, SMALL[1])


def edit_pt(path, change):
    torch.save(change(torch.load(path, weights_only=True)), path)


FILE = f"{PREFIX}_60-100.pt"
FOLDER = f"{FOLDER_OF_B}/phoenix_deeper-starling/{CONFIG}/seed17/epoch1"


@pytest.fixture
def confidences(small_tree, tmp_path):
    """Copy the confidences of one adapter."""
    shutil.copytree(small_tree.tree / FOLDER, tmp_path / FOLDER)
    return tmp_path


def read_folder(tree, release, span=(60, 100)):
    tops = release.tops["b", "jeop", "phoenix"]
    labels = np.array([tops[i][1] if i in tops else -1 for i in range(*span)])
    return read_confidences(tree, FOLDER, PREFIX, span, labels)


def set_entry(key, index, value):
    def change(content):
        content[key][index] = value
        return content

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_entry("judge_labels", 7, 9), r"label 9 for question 67 is none of"),
        (set_entry("confs", 8, 1.5), r"confidence 1\.5 for question 68 is not in \[0, 1\]"),
        (set_entry("confs", 8, float("inf")), r"confidence inf for question 68"),
        (lambda c: {**c, "eval_range": (60, 99)}, r"'eval_range' is \(60, 99\)"),
        (lambda c: {**c, "confs": c["confs"][:-1]}, r"'confs' .*\(39,\).* \(40,\)"),
        (lambda c: {**c, "confs": c["confs"].long()}, r"'confs' holds int64.* float"),
        (lambda c: {"confs": c["confs"]}, r"contains no tensor 'judge_labels'"),
        (lambda c: c["confs"], r"contains no dict"),
    ],
)  # fmt: skip
def test_wrong_confidence_files_are_refused(confidences, small_tree, change, message):
    edit_pt(confidences / FOLDER / FILE, change)
    with pytest.raises(ReleaseError, match=f"{FILE}.*{message}"):
        read_folder(confidences, small_tree)


def test_missing_confidences_are_refused(small_release):
    edit_pt(
        small_release / FOLDER / FILE, lambda c: {**c, "confs": torch.full((40,), torch.nan)}
    )
    message = (
        rf"{PREFIX}_\*\.pt: no confidence for \d+ of \d+ answered questions, the first .* 60"
    )
    with pytest.raises(ReleaseError, match=message):
        tables_of(small_release, *SMALL)


def test_labels_that_contradict_the_top_clusters_are_refused(confidences, small_tree):
    label = small_tree.tops["b", "jeop", "phoenix"][83][1]
    wrong_label = label % 3 + 1
    edit_pt(confidences / FOLDER / FILE, set_entry("judge_labels", 23, wrong_label))
    message = (
        rf"{FILE}: judge_labels has {wrong_label} for question 83, but judge\.pt has {label}"
    )
    with pytest.raises(ReleaseError, match=message):
        read_folder(confidences, small_tree)


def test_a_confidence_without_an_answer_is_refused(confidences):
    """The release has NaN if there is no answer; here question 65 of 40 has a number."""
    edit_pt(confidences / FOLDER / FILE, set_entry("judge_labels", 5, -1))
    edit_pt(confidences / FOLDER / FILE, set_entry("confs", 5, 0.75))
    unknown = np.full(40, UNKNOWN)
    message = rf"{FILE}: confs has 0\.75 for question 65, but judge_labels .* no answer there; "
    with pytest.raises(ReleaseError, match=message):
        read_confidences(confidences, FOLDER, PREFIX, (60, 100), unknown)


def test_overlapping_shards_are_refused(confidences, small_tree):
    folder = confidences / FOLDER
    content = torch.load(folder / FILE, weights_only=True)
    part = {key: content[key][:10] for key in ("confs", "judge_labels")}
    torch.save({**part, "eval_range": (60, 70)}, folder / f"{PREFIX}_60-70.pt")
    with pytest.raises(ReleaseError, match=rf"{FILE}: covers .*phoenix_60-70\.pt covers too"):
        read_folder(confidences, small_tree)


def test_a_shard_can_reach_beyond_the_questions(small_tree):
    """Questions 65 to 75 of a file of 60 to 100."""
    values = small_tree.numbers["b", "jeop", "jeop", "oracle_1answer", 17, "phoenix"]
    read = read_folder(small_tree.tree, small_tree, (65, 75))
    expected = [values.get(i, np.nan) for i in range(65, 75)]
    np.testing.assert_array_equal(read.confidence, expected)
    assert read.missing == []


def edit_pkl(path, change):
    path.write_bytes(pickle.dumps(change(pickle.loads(path.read_bytes()))))


BEAM = f"{FOLDER_OF_B}/phoenix/60-80/beam"


@pytest.fixture
def candidates(small_tree, tmp_path):
    """Copy the candidates of one checkpoint."""
    shutil.copytree(
        small_tree.tree / FOLDER_OF_B / "phoenix", tmp_path / FOLDER_OF_B / "phoenix"
    )
    return tmp_path


def read_shards(tree, *span):
    return read_candidates(tree, "jeop", "org/model-b", "phoenix", {"test": span})


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("beam_strs.pkl", lambda v: v[:-1], "has 19 questions, but the name of the folder has"),
        ("beam_strs.pkl", lambda v: [v[0][:9], *v[1:]], "9 strings for jeop-60, but needs 10"),
        ("beam_lls.pt", lambda v: v[:, :9], r"\(20, 9\), but needs .* shape \(20, 10\)"),
        ("beam_group_strs.pkl", lambda v: v[:5], "has 5 questions"),
        ("beam_group_strs.pkl", lambda v: [v[0] * 11, *v[1:]], "more clusters than beams"),
        ("beam_group_strs.pkl", lambda v: [[], *v[1:]], "more probabilities than its 0 cl"),
        ("beam_group_strs.pkl", lambda v: [[[]], *v[1:]], "an empty cluster"),
        ("beam_group_probs.pt", lambda v: v.long(), r"int64\(20, 10\), but needs a float"),
        ("beam_group_probs.pt", lambda v: v + 1, r"a probability outside \[0, 1\] for jeop-60"),
        ("beam_group_probs.pt", lambda v: v * torch.nan, r"outside \[0, 1\] for jeop-60"),
        ("beam_group_probs.pt", lambda v: {"p": v}, "holds no tensor"),
        ("judge.pt", lambda v: v.float(), "but needs a whole-number tensor"),
        ("judge.pt", lambda v: v * 0 + 4, "a label other than 1, 2, 3 and -1 for jeop-60"),
    ],
)
def test_wrong_candidate_files_are_refused(candidates, file, change, message):
    path = candidates / BEAM / file
    (edit_pkl if file.endswith("pkl") else edit_pt)(path, change)
    # An error of one file can show in another file of the same shard.
    with pytest.raises(ReleaseError, match=f"60-80/beam/beam.*{message}|judge.pt.*{message}"):
        read_shards(candidates, 60, 100)


def test_labels_beyond_the_clusters_are_ignored_and_counted(candidates, caplog):
    caplog.set_level(logging.INFO)
    original = read_shards(candidates, 60, 80)
    # The label is -1 without a cluster; all of these get a valid or invalid label.
    surplus = (torch.load(candidates / BEAM / "judge.pt", weights_only=True) == -1).sum()
    edit_pt(candidates / BEAM / "judge.pt", lambda v: v.where(v != -1, torch.tensor(7)))
    assert read_shards(candidates, 60, 80).labels.equals(original.labels)
    assert f"beam/judge.pt: ignored {surplus} labels beyond the clusters" in caplog.text


def test_beams_without_a_score_are_left_out_and_counted(candidates, caplog):
    original = read_shards(candidates, 60, 80).beams

    def forget(scores):
        scores[3, 7:] = torch.nan  # the last three of question 63
        return scores

    edit_pt(candidates / BEAM / "beam_lls.pt", forget)
    is_lost = (original["question_id"] == "jeop-63") & (original["beam"] >= 7)
    expected = original[~is_lost].reset_index(drop=True)
    pd.testing.assert_frame_equal(read_shards(candidates, 60, 80).beams, expected)
    [message] = caplog.messages
    assert message.endswith("60-80/beam/beam_strs.pkl: left out 3 beams, whose scores are NaN")


@pytest.mark.parametrize("file", [f"{BEAM}/beam_group_strs.pkl", f"{FOLDER}/{FILE}"])
def test_code_in_an_archive_is_not_run_and_all_files_are_deleted(small_release, file):
    hostile, path = Hostile(small_release / "sentinel"), small_release / file
    if path.suffix == ".pkl":
        path.write_bytes(pickle.dumps([[[hostile]]] * 20))
    else:
        torch.save({"confs": hostile}, path)
    with pytest.raises(UnsafeFileError, match=f"{path.name}: refused, .*(whole pickle|code)"):
        import_packed(small_release)
    assert not (small_release / "sentinel").exists()
    assert not any((small_release.parents[1] / "out/release").iterdir())


def test_the_unpacked_files_are_deleted_after_the_import(small_release):
    assert import_packed(small_release).empty
    left = {path.name for path in (small_release.parents[1] / "out/release").iterdir()}
    assert left == {"missing.csv"}


def test_an_archive_that_is_not_the_published_one_is_not_unpacked(tmp_path):
    path = tmp_path / "a.tar.zst"
    path.write_bytes(compress(tar_of(("results/conset/file", bytes(10**4), {}))))
    digest = write_digest(path)
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    with pytest.raises(ArchiveError, match=r"a\.tar\.zst: its sha256 is .* download both"):
        run_import(tmp_path / "out", path, digest)
    assert not (tmp_path / "out").exists()
