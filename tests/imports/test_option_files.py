"""Scored options of multiple choice: from files to tables, and files that are refused."""
# ruff: noqa: E501  (a line per refusal)

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from import_options import import_options
from own_rows import ONE, wanted, write_rows

from persistcal.answers.clusters import beam_weights
from persistcal.readers.answer_files import read_options
from persistcal.store import artifacts
from persistcal.store.jobs import Job
from persistcal.store.user_files import UserTableError

HERE = Path(__file__).parent
TABLES = ("questions", "beams", "clusters", "labels", "answers")
# Keys of a line of DataDecide's released sample (its README, and OLMES)
OUTPUT = {"num_tokens_all": 201, "is_greedy": False}


def valid(n=3, checkpoints="ab"):
    """Return questions with three options at each checkpoint."""
    return [
        {
            **ONE,
            "checkpoint": checkpoint,
            "question_id": f"q{i}",
            "question": f"Where is {i}?",
            "options": ["Oslo", "New York", "Lima"],
            "option_logprobs": [-2.0 - i, -2.5, -3.0 - ord(checkpoint) / 100],
            "gold": i % 3,
        }
        for checkpoint in checkpoints
        for i in range(n)
    ]


def write(folder, rows, kind="jsonl", name="options"):
    return write_rows(folder / f"{name}.{kind}", rows)


def run(folder, entries, *, checkpoints="ab", normalisation="none", needs=None, equal=False):
    """Import files and return the tables of each checkpoint."""
    study = wanted(checkpoints, needs=needs)
    subjects = [{**row, "split": s} for row in study.answered for s in ("train", "test")]
    outputs = {
        n: [f"{folder}/{n}/{s['checkpoint']}/{s['split']}.parquet" for s in subjects]
        for n in TABLES
    }
    outputs["questions"] = [f"{folder}/questions.parquet"]
    params = {f"{name}_of": subjects for name in TABLES}
    params["questions_of"] = [{"dataset": "quiz"}]
    import_options(
        Job({}, outputs, params, 1),
        entries=[{"file": e} if isinstance(e, str) else e for e in entries],
        normalisation=normalisation,
        known={"m1": dict.fromkeys(checkpoints, equal)},
        wanted=study,
    )
    questions = artifacts.read(outputs.pop("questions")[0], artifacts.QUESTIONS)
    tables = {}
    for checkpoint in checkpoints:
        tables[checkpoint] = {"questions": questions}
        for n, files in outputs.items():
            parts = [
                artifacts.read(file, getattr(artifacts, n.upper())).assign(split=s["split"])
                for file, s in zip(files, subjects, strict=True)
                if s["checkpoint"] == checkpoint
            ]
            tables[checkpoint][n] = pd.concat(parts)
    return tables


def run_at_a(folder, rows, **settings):
    """Import rows of checkpoint a, or lines of a log, and return the tables of a."""
    entry = {"file": write(folder, rows)} | ({} if "model" in rows[0] else ONE)
    return run(folder, [entry], checkpoints="a", **settings)["a"]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_options_become_candidates_with_softmax_probabilities(tmp_path, kind):
    tables = run(tmp_path, [write(tmp_path, valid(), kind)])["a"]
    questions = tables["questions"]
    assert [list(o) for o in questions["options"]] == [["Oslo", "New York", "Lima"]] * 3
    assert questions["gold"].tolist() == [0, 1, 2]
    assert [list(r) for r in questions["references"]] == [["Oslo"], ["New York"], ["Lima"]]
    q1 = tables["clusters"][tables["clusters"]["question_id"] == "q1"]
    # Scores of -3, -2.5 and -3.97 (ord("a") is 97): New York, Oslo, Lima
    assert q1["answer"].tolist() == ["New York", "Oslo", "Lima"]
    total = math.exp(-3) + math.exp(-2.5) + math.exp(-3.97)
    shares = [math.exp(x) / total for x in (-2.5, -3, -3.97)]
    assert q1["probability"].tolist() == pytest.approx(shares, rel=1e-14)
    assert [list(m) for m in q1["members"]] == [["New York"], ["Oslo"], ["Lima"]]
    labels = tables["labels"].set_index(["question_id", "cluster"])
    assert labels.loc["q1", "label"].tolist() == ["correct", "incorrect", "incorrect"]
    assert set(labels["source"]) == {"gold"}
    answers = tables["answers"]
    assert answers["answer"].tolist() == ["Oslo", "New York", "New York"]
    assert answers["correct"].tolist() == [True, True, False]


def test_probabilities_of_options_equal_the_weights_of_beams(tmp_path):
    """Each question is compared with the weights of beams; numbers of options differ."""
    rng = np.random.default_rng(3)
    rows = []
    for i, n in enumerate(rng.integers(2, 6, 40).tolist()):
        scores = (-rng.exponential(20, n)).tolist()
        options = {"options": [f"o{k}" for k in range(n)], "option_logprobs": scores}
        rows.append({**valid(1)[0], "question_id": f"q{i}", "question": f"{i}?", **options})
    tables = run_at_a(tmp_path, rows)
    for row in rows:
        clusters = tables["clusters"][tables["clusters"]["question_id"] == row["question_id"]]
        weights = beam_weights(row["option_logprobs"], weighting="softmax").tolist()
        expected = dict(zip(row["options"], weights, strict=True))
        best_first = sorted(expected, key=lambda option: -expected[option])
        assert clusters["answer"].tolist() == best_first
        assert clusters["probability"].tolist() == pytest.approx(
            [expected[option] for option in best_first], rel=1e-14
        )


def test_the_first_of_several_best_options_is_the_answer(tmp_path):
    rows = [{**row, "option_logprobs": [-3, -1, -1]} for row in valid(2, "a")]
    answers = run_at_a(tmp_path, rows)["answers"]
    assert answers["answer"].tolist() == ["New York"] * 2  # as numpy.argmax


@pytest.mark.parametrize(
    ("normalisation", "scores"),
    [
        ("none", [-4.0, -6.0, -6.0]),
        ("per_token", [-2.0, -2.0, -6.0]),  # 2, 3 and 1 tokens
        ("per_character", [-1.0, -0.75, -1.5]),  # 4, 8 and 4 characters
        ("unconditional", [1.0, 3.0, -1.0]),  # -5, -9 and -5 without the question
    ],
)
def test_scores_are_normalised_as_the_config_selects(tmp_path, normalisation, scores):
    more = {"option_tokens": [2, 3, 1], "option_logprobs_unconditional": [-5, -9, -5]}
    rows = [{**row, "option_logprobs": [-4, -6, -6], **more} for row in valid(2, "a")]
    tables = run_at_a(tmp_path, rows, normalisation=normalisation)
    assert probabilities(tables, 3) == pytest.approx(softmax(scores) * 2, rel=1e-14)
    numbers = tables["beams"][["logprob", "n_tokens", "unconditional"]].values.tolist()
    assert numbers == [[-4, 2, -5], [-6, 3, -9], [-6, 1, -5]] * 2


def softmax(scores):
    total = sum(math.exp(score) for score in scores)
    return [math.exp(score) / total for score in scores]


def probabilities(tables, n_options):
    """Return the probabilities of options, question by question, in the order of the file."""
    texts = tables["beams"][["question_id", "text"]].rename(columns={"text": "answer"})
    options = texts.merge(tables["clusters"], how="left", validate="one_to_one")
    assert len(options) % n_options == 0
    return options["probability"].tolist()


def test_options_with_the_same_text_are_numbered_without_clashes(tmp_path):
    repeated = {"options": ["a", "a [3]", "a", "b"], "option_logprobs": [-1, -2, -3, -1.5]}
    tables = run_at_a(tmp_path, [row | repeated for row in valid(2, "a")])
    options = ["a", "a [3]", "a [3] [3]", "b"]
    assert list(tables["questions"]["options"][0]) == options
    assert probabilities(tables, 4) == pytest.approx(softmax([-1, -2, -3, -1.5]) * 2)
    assert tables["answers"]["correct"].tolist() == [True, False]  # gold is 0, then 1


def test_each_split_can_be_in_a_separate_file(tmp_path):
    """Checkpoint b has no answers in the training split."""
    train_keys = {"split": "train", "question_id": "t", "question": "T?"}
    train = [row | train_keys for row in valid(1, "a")]
    files = [write(tmp_path, rows, name=n) for n, rows in (("b", valid()), ("a", train))]
    tables = run(tmp_path, files)
    assert tables["b"]["questions"]["split"].tolist() == ["test"] * 3 + ["train"]
    assert sorted(tables["a"]["answers"]["split"]) == ["test"] * 3 + ["train"]
    assert sorted(tables["b"]["answers"]["split"]) == ["test"] * 3
    with pytest.raises(
        UserTableError,
        match=r"question_id t \(row 1 of a.jsonl, row 1 of a.jsonl\); give each document once",
    ):
        run(tmp_path, [*files, files[1]])


def changed(n=3, **changes):
    """Return rows in which question q1 differs at checkpoint b."""
    rows = valid(n)
    rows[n + 1] |= changes
    return rows


POSITIVE = {"option_logprobs": [-1.0, 0.5, -2.0]}


@pytest.mark.parametrize(
    ("rows", "normalisation", "message"),
    [
        (changed(options=["Oslo", "Lima", "New York"]), "none", r"options of question 'q1' of quiz differs .*\(row 2: \('Oslo', 'New York', 'Lima'\), row 5: \('Oslo', 'Lima', 'New York'\)\)"),
        (changed(options=["Oslo", "Lima"], option_logprobs=[-1, -2]), "none", "options of question 'q1' of quiz differs"),
        (changed(gold=2), "none", r"gold of question 'q1' of .* \(row 2: 1, row 5: 2\); a question has one"),
        (changed(question="Who?"), "none", "question of question 'q1' of quiz"),
        (changed(gold=3), "none", r"gold is not the place of an option \(row 5: 3\); .* counted from 0"),
        (changed(gold=2, options=["Oslo", "Lima"], option_logprobs=[-1, -2]), "none", "gold is not the place"),
        (changed(gold=0.5), "none", "gold is not valid .*; give the place of"),
        (changed(**POSITIVE), "none", r"option_logprobs is not valid \(row 5: \['-1.0', '0.5', '-2.0'\]\); give a list of log-prob"),
        (changed(option_logprobs=[-1, float("-inf"), -1]), "none", "option_logprobs is not valid"),
        (changed(option_logprobs=[-1, None, -1]), "none", "option_logprobs is not valid"),
        ([{**r, "option_logprobs": None} for r in valid()], "none", r"option_logprobs is empty \(row 1, row 2, row 3\); give a list"),
        (changed(option_logprobs=[-1, -2]), "none", r"option_logprobs is not as long as options \(row 5"),
        (changed(options="Oslo"), "none", r"options is not valid \(row 5: 'Oslo'\); give a list of at least two"),
        (changed(options=["a", "", "b"]), "none", r"options is not valid \(row 5: \['a', '', 'b'\]\)"),
        (changed(question_id="q0", question="Where is 0?", gold=0), "none", r"1 rows repeat .* checkpoint b, dataset quiz, question_id q0 \(row 4, row 5\); give each"),
        ([{**r, "question": "Same?"} for r in valid()], "none", r"2 questions of quiz have several ids, .* \(row 1: 'q0', row 2: 'q1', row 3: 'q2'\)"),
        (valid()[:-1], "none", r"checkpoint b has no row of 1 questions of quiz that others have \(row 3: 'q2'\)"),
        (valid(checkpoints="a"), "none", "no row is of model 'm1', checkpoint 'b', dataset 'quiz'"),
        ([{**r, "checkpoint": c} for c in "ab" for r in valid(checkpoints="a")], "none", "all scores on quiz of checkpoint b of m1 are those of a"),
        ([{**r, "version": f"1.{r['checkpoint'] == 'b'}"} for r in valid()], "none", r"version of question 'q0' of quiz differs .*row 4: '1.True'\); take all logs"),
        (valid(), "per_token", "normalisation per_token needs the column 'option_tokens', which is missing"),
        (valid(), "unconditional", "column 'option_logprobs_unconditional', which is missing"),
        (changed(option_tokens=[1, 1, 0]), "per_token", "option_tokens is not valid"),
        ([{**r, "split": "train"} for r in valid()], "none", "estimators.some needs scores"),
        ([{**r, "correct": 1} for r in valid()], "none", r"score of the log is not that of its best option \(row 3: 1.0, row 6"),
        ([{**r, "answer": "Oslo"} for r in valid()], "none", "unknown column 'answer'; known are model, .* split; remove"),
        ([{**r, "model": "m2"} for r in valid()], "none", "model is not in the config"),
    ],
)  # fmt: skip
def test_wrong_scores_are_refused_with_their_row(tmp_path, rows, normalisation, message):
    with pytest.raises(UserTableError, match=rf"options\.jsonl: .*{message}"):
        run(tmp_path, [write(tmp_path, rows)], normalisation=normalisation)


def test_an_estimator_that_needs_missing_numbers_is_refused(tmp_path):
    with pytest.raises(UserTableError, match="the estimator perplexity needs the n_tokens"):
        run(tmp_path, [write(tmp_path, valid())], needs={"perplexity": ("n_tokens",)})


# Logs that version 0.4.13 wrote of its model `dummy`; the test of the installed harness makes more
CHOICE = [str(HERE / f"lm_eval_choice_{seed}.jsonl") for seed in (1, 2)]
BY_TEXT = str(HERE / "lm_eval_by_text.jsonl")


def read_lines(log):
    return [json.loads(line) for line in Path(log).read_text().splitlines()]


@pytest.mark.parametrize("file", [*CHOICE, BY_TEXT])
@pytest.mark.parametrize(
    ("normalisation", "metric"),
    [("none", "acc"), ("per_character", "acc_norm"), ("unconditional", "acc_mutual_info")],
)
def test_answers_of_a_log_have_the_harness_accuracy(tmp_path, file, normalisation, metric):
    lines = read_lines(file)
    if file == BY_TEXT:  # without row 3, see the next test
        lines = [line | {"acc_mutual_info": line["acc"]} for line in lines[:2] + lines[3:]]
        file = write(tmp_path, lines)
        if normalisation == "unconditional":
            with pytest.raises(UserTableError, match=r"logprobs_unconditional.* is missing"):
                read_options({"file": file, **ONE}, normalisation)
            return
    entry = {"file": file, **ONE}
    tables = run(tmp_path, [entry], checkpoints="a", normalisation=normalisation)["a"]
    questions = tables["questions"]

    assert questions["question"].tolist() == [line["doc"]["question"] for line in lines]
    assert [list(o) for o in questions["options"]] == [line["doc"]["choices"] for line in lines]
    assert questions["gold"].tolist() == [line["doc"]["answer"] for line in lines]
    correct = tables["answers"]["correct"].tolist()

    assert correct == [line[metric] == 1 for line in lines]
    assert 0 < sum(correct) < len(lines)


def test_a_log_with_a_score_that_contradicts_its_target_is_refused():
    """The harness took the target 6, the text of an option, as a position: no option is right."""
    with pytest.raises(UserTableError, match=r"score of the log is not .* \(row 3: 0\.0\)"):
        read_options({"file": BY_TEXT, **ONE}, "none")


def test_two_logs_of_the_harness_are_two_checkpoints(tmp_path):
    entries = [{"file": f, **ONE, "checkpoint": c} for f, c in zip(CHOICE, "ab", strict=True)]
    tables = run(tmp_path, entries)
    assert tables["a"]["beams"]["text"].tolist() == tables["b"]["beams"]["text"].tolist()
    lines = read_lines(CHOICE[1])
    logprobs = [float(r[0][0]) for x in lines for r in x["resps"][: len(x["resps"]) // 2]]
    assert tables["b"]["beams"]["logprob"].tolist() == logprobs
    entries[1]["file"] = write(tmp_path, [line | {"prompt_hash": "x"} for line in lines])
    with pytest.raises(UserTableError, match="version of question '0' of quiz differs"):
        run(tmp_path, entries)


def test_logs_of_the_installed_harness_have_its_accuracy(tmp_path):
    """The logs next to this file were made in the same way."""
    pytest.importorskip("lm_eval.evaluator", reason="sacrebleu is not installed")
    write(tmp_path, [line["doc"] for line in read_lines(CHOICE[0])], name="docs")
    metrics = "".join(f"  - {{metric: {m}}}\n" for m in ("acc", "acc_norm", "acc_mutual_info"))
    (tmp_path / "choice.yaml").write_text(
        "task: choice\ndataset_path: json\ndataset_kwargs: {data_files: {test: docs.jsonl}}\n"
        "test_split: test\noutput_type: multiple_choice\ndoc_to_choice: choices\n"
        'doc_to_text: "Question: {{question}}\\nAnswer:"\ndoc_to_target: answer\n'
        f"metric_list:\n{metrics}"
    )
    words = "run --model dummy --tasks choice --include_path . --seed 1 --log_samples"
    program = [sys.executable, "-m", "lm_eval", *words.split(), "--output_path", "logs"]
    subprocess.run(program, cwd=tmp_path, check=True, capture_output=True)
    (log,) = (tmp_path / "logs").glob("*/samples_choice_*.jsonl")
    lines, entry = read_lines(log), {"file": str(log), **ONE}
    for normalisation, metric in (("none", "acc"), ("per_character", "acc_norm")):
        tables = run(tmp_path, [entry], checkpoints="a", normalisation=normalisation)["a"]
        assert tables["answers"]["correct"].tolist() == [x[metric] == 1 for x in lines]


def harness_line(i=0, **changes):
    """Return a line of a log of the harness; the targets of its task are texts."""
    texts, logprobs = ["2", "1", "0"], [-1.0, -2.0, -3.0]
    prompt = f"Q: a\nA: b\n\nQ: {i}?\nA:"
    requests = {
        f"gen_args_{k}": {"arg_0": prompt, "arg_1": f" {t}"} for k, t in enumerate(texts)
    }
    line = {"doc_id": i, "doc": {"premise": f"{i}"}, "target": "2", "arguments": requests}
    line |= {"resps": [[[str(x), "False"]] for x in logprobs], "filter": "none", "acc": 1.0}
    return line | changes


def test_more_than_ten_options_are_ordered_by_number(tmp_path):
    """Some logs have sorted keys, with gen_args_10 before gen_args_2."""
    texts = [f"option {k}" for k in range(12)]
    requests_by_name = {
        f"gen_args_{k}": {"arg_0": "Q", "arg_1": f" {x}"} for k, x in enumerate(texts)
    }
    line = harness_line(doc={"question": "Q", "choices": texts}, target="option 3")
    line["arguments"] = {name: requests_by_name[name] for name in sorted(requests_by_name)}
    line["resps"] = [[[str(-abs(k - 3)), "False"]] for k in range(12)]
    rows = read_log(tmp_path, [line | {"acc": 1.0}])
    assert rows["options"][0] == tuple(texts)
    assert rows["gold"].tolist() == [3] == [int(np.argmax(rows["numbers"][0][0]))]


@pytest.mark.parametrize(
    ("delimiter", "choices", "document"),
    [
        (" -> ", ["Oslo", "Rome a"], {"choices": {"text": ["Oslo", "Rome a"], "label": ["A"]}}),
        ("", [" A", " BB"], {"options": [" A", " BB"]}),
        (" ", ["A", "BB"], {"sol1": "A", "sol2": "BB"}),
        (" ", ["the cat", "the ox"], {"endings": ["the cat", "the ox"]}),
        ("", ["A", "BB"], {"premise": "?"}),  # no common beginning
    ],
)
def test_the_delimiter_is_found_in_the_document(tmp_path, delimiter, choices, document):
    arguments = {
        f"gen_args_{k}": {"arg_0": "Q", "arg_1": f"{delimiter}{text}"}
        for k, text in enumerate(choices)
    }
    line = {"doc": {"question": "Q", **document}, "target": choices[0], "arguments": arguments}
    line |= {"resps": [[["-4.0", "False"]], [["-9.0", "False"]]]}
    rows = read_log(tmp_path, [harness_line(**line)], "per_character")
    assert rows["numbers"][0][0].tolist() == [-4 / len(choices[0]), -9 / len(choices[1])]


def test_an_unknown_delimiter_is_refused_if_characters_count(tmp_path):
    assert len(read_log(tmp_path, [harness_line()])) == 1
    with pytest.raises(UserTableError, match="so the numbers of characters are unknown"):
        read_log(tmp_path, [harness_line()], "per_character")


def read_log(folder, lines, normalisation="none"):
    return read_options({"file": write(folder, lines), **ONE}, normalisation)


def test_a_target_that_is_a_text_and_a_position_is_decided_by_the_accuracy(tmp_path):
    """The target 2 is the text of the first option and the position of the last one."""
    rows = read_log(tmp_path, [harness_line(0), harness_line(1)])
    assert rows["gold"].tolist() == [0, 0]
    assert rows["question"].tolist() == ["Q: 0?\nA:", "Q: 1?\nA:"]
    rows = read_log(tmp_path, [harness_line(0, acc=0.0), harness_line(1, acc=0.0)])
    assert rows["gold"].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("prompt", "texts", "options"),
    [("", "2103", ("2", "1", "0", "3")), ("Q", "2121", ("2", "1", "2 [3]", "1 [4]"))],
)
def test_repeated_options_without_a_prompt_are_unconditional(tmp_path, prompt, texts, options):
    """BLiMP's sentences have no prompt; acc_mutual_info scores each option twice."""
    arguments = {
        f"gen_args_{k}": {"arg_0": prompt, "arg_1": f" {x}"} for k, x in enumerate(texts)
    }
    resps = [[[str(-x), "False"]] for x in range(1, 5)]
    line = harness_line(doc={"question": "?"}, arguments=arguments, resps=resps)
    assert read_log(tmp_path, [line])["options"].tolist() == [options]


def test_a_score_can_be_true_or_missing(tmp_path):
    right, wrong, *_ = valid(2, "a")  # -2 and gold 0, then -2.5 and gold 1
    for score in ("", None, True, "true"):
        rows = [{**right, "correct": True}, {**wrong, "correct": score}]
        assert len(read_options({"file": write(tmp_path, rows)}, "none")) == 2
    for score, message in [
        ("false", "score of the log is not that"),
        ("maybe", r"correct is not valid \(row 1: 'maybe'\); give 1"),
    ]:
        with pytest.raises(UserTableError, match=message):
            read_options({"file": write(tmp_path, [{**right, "correct": score}])}, "none")


CONTEXTS = {f"gen_args_{k}": {"arg_0": f"The {k}", "arg_1": " fell"} for k in range(3)}
GENERATED = {"gen_args_0": {"arg_0": "Q", "arg_1": {"until": ["\n"]}}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (harness_line(acc=0.5), "target of row 1 is '2', which is not surely the text or the place"),
        (harness_line(target="[0, 1]"), r"target of row 1 is '\[0, 1\]'"),
        (harness_line(target="3"), "target of row 1 is '3'"),
        (harness_line(target="1", acc=1.0), "target of row 1 is|score of the log"),
        (harness_line(arguments=CONTEXTS), "row 1 has options inside the question"),
        (harness_line(arguments=GENERATED), "row 1 is of a task that generates text"),
        (harness_line(arguments=None), "row 1 is of a task that generates text"),
        (harness_line(resps=[["x"]]), r"resps of row 1 is \[\['x'\]\], but"),
        (harness_line(resps=[[["-1", "False"]]]), "a list of one pair for each of the 3 requests"),
        (harness_line(resps=[[["-1", "False", "x"]]] * 3), "a list of one pair for each"),
    ],
)  # fmt: skip
def test_unclear_logs_of_the_harness_are_refused(tmp_path, line, message):
    with pytest.raises(UserTableError, match=rf"options\.jsonl: .*({message})"):
        read_log(tmp_path, [line])


def olmes_line(i, *, outputs=None, **changes):
    """Return a line of predictions of OLMES, as in DataDecide."""
    numbers = [(-33.8, 12, 60, -44.9), (-36.5, 11, 55, -42.0), (-29.2, 9, 51, -36.2)]
    outputs = outputs or [
        {"sum_logits": s, "num_tokens": t, "num_chars": c, "sum_logits_uncond": u, **OUTPUT}
        for s, t, c, u in numbers
    ]
    # The last option has the best sum; the first is best per token (-2.82, -3.32, -3.24), per
    # character (-.563, -.664, -.573) and minus the unconditional sum (11.1, 5.5, 7.0).
    scores = {"acc_raw": 0, "acc_per_token": 1, "acc_per_char": 1, "acc_uncond": 1}
    return {
        **{"doc_id": i, "native_id": f"Mercury_{i}", "label": 0, "task_hash": "da4d"},
        **{"model_hash": "340b", "metrics": {"correct_choice": 0, **scores}},
        "model_output": outputs,
        **changes,
    }


@pytest.mark.parametrize(
    ("normalisation", "correct"),
    [("none", False), ("per_token", True), ("per_character", True), ("unconditional", True)],
)
def test_predictions_of_olmes_have_its_accuracy(tmp_path, normalisation, correct):
    tables = run_at_a(tmp_path, [olmes_line(0), olmes_line(1)], normalisation=normalisation)
    assert tables["answers"]["correct"].tolist() == [correct] * 2
    assert tables["questions"]["question"].tolist() == ["Mercury_0", "Mercury_1"]
    assert list(tables["questions"]["options"][0])[1] == "option 2 (55 characters)"


def test_texts_of_olmes_are_read_from_its_requests(tmp_path):
    requests = [
        {"request_type": "loglikelihood", "idx": k, "doc_id": i, "label": 0}
        | {"doc": {"query": f"Question: {i}?", "choices": ["x", "y", "z"], "gold": 0}}
        | {"request": {"context": f"Question: {i}?\nAnswer:", "continuation": f" {text}"}}
        for i in range(2)
        for k, text in enumerate("xyz")
    ]
    entry = {"file": write(tmp_path, [olmes_line(0), olmes_line(1)]), **ONE}

    def tables(requests):
        entry["requests"] = write(tmp_path, requests, name="requests")
        return run(tmp_path, [entry], checkpoints="a")["a"]

    bare = [{**x, "doc": {"query": x["doc"]["query"]}} for x in requests]
    for lines in (requests, bare, bare[::-1]):  # ordered by idx, not by line
        imported = tables(lines)
        assert imported["questions"]["question"].tolist() == ["Question: 0?", "Question: 1?"]
        assert imported["beams"]["text"].tolist() == ["x", "y", "z"] * 2
    changes = {
        "row 2 has the idx '0', which another": {"idx": 0},
        "document 0 lacks the continuation of option 1": {"idx": 5},
        "row 2 has neither a query in doc nor a context": {"request": None},
        "document 0 lacks the continuation of option 1;": {"request": {"context": "Q"}},
    }
    for message, change in changes.items():
        with pytest.raises(UserTableError, match=rf"requests\.jsonl: {message}"):
            tables([bare[0], {**bare[1], "doc": None, **change}, *bare[2:]])
    with pytest.raises(UserTableError, match=r"row 2 has 3 options of document 1, but .*req"):
        tables(bare[:4])
    with pytest.raises(UserTableError, match="has no requests; give the -requests"):
        tables([olmes_line(0)])


def test_predictions_of_olmo_eval_are_read_with_their_texts(tmp_path):
    """Lines contain the texts; scores with the question precede the unconditional scores."""
    scored = [(" x", -3.0), (" yy", -2.0), (" x", -6.0), (" yy", -2.5)]
    outputs = [
        {"text": text, "sum_logits": s, "num_tokens": 1, "num_chars": len(text), **OUTPUT}
        for text, s in scored
    ]
    line = {"doc_id": 0, "native_id": "a", "label": 0, "instance_metrics": {}}
    lines = [line | {"model_output": part} for part in (outputs, outputs[:2])]
    tables = run_at_a(tmp_path, lines[:1], normalisation="unconditional")

    assert tables["beams"]["text"].tolist() == ["x", "yy"]
    assert probabilities(tables, 2) == pytest.approx(softmax([3.0, 0.5]))
    tables = run_at_a(tmp_path, lines[1:], normalisation="per_character")
    assert probabilities(tables, 2) == pytest.approx(softmax([-1.5, -2 / 3]))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (olmes_line(0, label=3), "gold is not the place of an option"),
        (olmes_line(0, label="Paris"), "gold is not valid .*give the place of the right"),
        (olmes_line(0, outputs=[{"text": "so"}] * 2), "option of row 1 has no sum_logits"),
        (olmes_line(0, model_output="x"), "model_output of row 1 is not a list"),
        (olmes_line(0, metrics={"acc_raw": 1}), "score of the log is not that of its best"),
    ],
)
def test_unclear_predictions_of_olmes_are_refused(tmp_path, line, message):
    with pytest.raises(UserTableError, match=rf"options\.jsonl: .*{message}"):
        read_options({"file": write(tmp_path, [line]), **ONE}, "none")


def test_answers_and_keys_of_other_formats_are_refused(tmp_path):
    rows = [{**ONE, "question_id": "1", "question": "?", "references": "a", "answer": "a"}]
    with pytest.raises(UserTableError, match="has no scores of options"):
        read_options({"file": write(tmp_path, rows)}, "none")
    with pytest.raises(UserTableError, match="is not a log with requests; leave requests out"):
        read_options({"file": write(tmp_path, valid()), "requests": "x"}, "none")
