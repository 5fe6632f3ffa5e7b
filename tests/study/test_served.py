"""Checkpoints behind an API: what a config must say of them, and what they are asked."""

from pathlib import Path

import pytest
import yaml
from configs import overlaid

from study.check import check_config
from study.inputs import Inputs
from study.resources import JobResources
from study.schema import ConfigError
from study.study import Study
from tools.estimate_cost import api_table, jobs_of

SERVED = yaml.safe_load("""
models:
  s:
    chat: turns
    checkpoints:
      z: {api: {base_url: http://a/v1, model: m-0}}
      a: {api: {base_url: http://a/v1, model: m-1}}
      b: {api: {base_url: http://a/v1, model: m-2, api_key_env: B_KEY}}
    earlier: [z]
    evaluation: [a, b]
decoding: {strategy: sample, n_samples: 5}
judge: {backend: lexical}
study:
  models: [s]
  datasets: [triviaqa]
  estimators: [self_consistency, end_correct]
  tables: [all_estimators]
  further: [beyond_the_paper]
""")


def served(*changes):
    return overlaid(SERVED, *changes)


def at(checkpoint, **api):
    return {"models": {"s": {"checkpoints": {checkpoint: {"api": api}}}}}


def study_of(**changes):
    return {"study": changes}


def test_a_study_of_models_behind_an_api_needs_no_more_than_this():
    check_config(served())
    study = Study(served())
    assert study.served == {"s": ["z", "a", "b"]}
    assert study.decides_answers("s", "a") == {"base_url": "http://a/v1", "model": "m-1"}
    reach = Inputs(study, Path()).reach("s", "b")
    assert reach["api_key_env"] == "B_KEY"
    assert reach["section"] == "models.s.checkpoints.b.api"
    assert (reach["max_requests"], reach["max_cost"]) == (100_000, None)


def test_nothing_is_asked_that_no_estimator_reads():
    study = Study(served())
    assert study.checkpoints("s") == ["a", "b"]
    assert study.splits_shown("s", "a", "triviaqa") == ["test"]
    # what only `further` tables would show is not paid for
    names = {row.estimator for row in study.ever_evaluated}
    assert names == {"self_consistency", "end_correct"}
    fitted = Study(served(study_of(estimators=["self_consistency_posthoc"])))
    assert fitted.checkpoints("s") == ["z", "a", "b"]
    assert fitted.splits_shown("s", "z", "triviaqa") == ["train"]


def test_a_model_may_have_checkpoints_of_both_kinds():
    local = {"models": {"s": {"repo": "org/m", "checkpoints": {"a": {"revision": "r"}}}}}
    config = served(local)
    del config["models"]["s"]["checkpoints"]["a"]["api"]
    check_config(config)
    study = Study(config)
    assert study.served == {"s": ["z", "b"]}
    job = {"model": "s", "checkpoint": "b", "dataset": "triviaqa", "split": "test"}
    resources = JobResources(Study(config))
    assert resources.request("cluster_answers", job).gpu == 1  # of the entailment model


PRICES = {"price_input": 1, "price_output": 2}
PASSAGES = {"file": "passages.csv", "prompt": "passage.txt"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (at("a", base_url="https://me:secret@a/v1"), "s.checkpoints.a.api.base_url is not as"),
        (at("a", base_url="https://a/v1#secret"), "s.checkpoints.a.api.base_url is not as"),
        (at("a", model=""), "checkpoints.a.api.model"),
        (at("a", modle="x"), "modle is not a known key; did you mean 'model'"),
        (at("a", samples_per_request=0), "samples_per_request"),
        (at("a", request={"n": 5}), "checkpoints.a.api.request sets n, which follows"),
        (at("a", logprobs=True, reasoning="drop"), "thinks first .reasoning. the answer's own"),
        (at("a", model="m-2"), "checkpoints.a and b ask one model at one address; correct"),
        (at("a", **PRICES), "a.api has prices, but api.max_cost is null; set it to the most"),
        ({"api": {"max_cost": 5}}, "max_cost is 5, but models.s.checkpoints.z.api lacks pri"),
        ({"decoding": {"strategy": "beams"}}, "decoding.strategy is beams, but models.s.ch"),
        (
            {"models": {"s": {"checkpoints": {"a": {"revision": "main"}}}}},
            "checkpoints.a has api and also revision; a checkpoint has one source",
        ),
        (
            {"models": {"s": {"checkpoints": {"a": {"context": PASSAGES}}}}},
            "checkpoints.a has api and also context; a checkpoint has one",
        ),
        ({"models": {"s": {"checkpoints": {"a": {"api": None}}}}}, "checkpoints.a.api is None"),
        (
            {"analyses": {"weight_similarity": {"models": ["s"]}}},
            "analyses.weight_similarity.models names 's', but its weights are behind an API",
        ),
        (study_of(estimators=["oracle"]), "estimators.oracle needs the weights .*s.ch.*z is"),
        (study_of(estimators=["p_true"]), "estimators.p_true needs the weights of checkpoints"),
        (
            study_of(estimators=["perplexity"]),
            "perplexity needs the .* set models.s.checkpoints.z.api.logprobs to true if the",
        ),
        (
            study_of(estimators=["min_token_probability"]),
            "needs the min_logprob of each answer, which .*z.api does not give; drop it",
        ),
        (
            study_of(estimators=["mean_token_entropy"]),
            "needs the entropy of each answer, which .*z.api does not give; drop it",
        ),
    ],
)
def test_what_cannot_be_asked_paid_or_rated_is_refused_in_a_sentence(change, said):
    estimators = {"study": {"estimators": ["end_correct"]}}
    with pytest.raises(ConfigError, match=said) as error:
        check_config(served(estimators, change))
    assert "secret" not in str(error.value) and "\n" not in str(error.value)


def test_what_a_server_gives_may_be_used():
    check_config(
        served(study_of(estimators=["said_probability", "said_guesses", "said_words"]))
    )
    give = [at(name, logprobs=True) for name in "zab"]
    check_config(served(*give, study_of(estimators=["perplexity", "sequence_probability"])))
    paid = [at(name, **PRICES) for name in "ab"]
    config = served(*paid, {"api": {"max_cost": 5}})
    with pytest.raises(ConfigError, match=r"z\.api lacks price_input"):
        check_config(served(*paid, {"api": {"max_cost": 5}}, at("z", price_output=1)))
    check_config(served(at("z", **PRICES), *paid, {"api": {"max_cost": 5}}))
    assert Inputs(Study(config), Path()).reach("s", "a")["max_cost"] == 5
    control = served(
        at("b", model="m-1"), {"models": {"s": {"checkpoints": {"b": {"seed": 3}}}}}
    )
    check_config(control)
    assert [Inputs(Study(control), Path()).draws("s", name)["seed"] for name in "ab"] == [17, 3]
    same = {"models": {"s": {"checkpoints": {"a": {"allow_identical_weights": True}}}}}
    check_config(served(at("b", model="m-1"), same))


JOBS = """
localrule sample_from_server:
    input: q
    wildcards: model=s, checkpoint=a, dataset=triviaqa, split=test
localrule sample_from_server:
    input: q
    wildcards: model=s, checkpoint=b, dataset=triviaqa, split=test
rule cluster_answers:
    wildcards: model=s, checkpoint=b, dataset=triviaqa, split=test
"""


def test_the_cost_of_confidences_in_words_by_hand():
    config = served(at("a", samples_per_request=4, price_input=10, price_output=100))
    config["datasets"]["triviaqa"] |= {"test": [9_000, 10_000], "train": [0, 300]}
    asked = "localrule ask_server:\n    wildcards: model=s, checkpoint={}, dataset=triviaqa"
    jobs = "\n".join(
        f"{asked.format(checkpoint)}, estimator={estimator}"
        for checkpoint, estimator in [
            ("a", "p_true_sampled"),
            ("a", "said_words"),
            ("z", "said_words"),
        ]
    )
    # 1,000 test questions with 10 replies in 3 requests of 120 + 45 + 15 = 180 tokens, up to 5
    # tokens each, and in 1 request, up to 30 tokens: 0.72 x 10 + 0.08 x 100 = 15.2; z, a
    # training checkpoint, is asked about 300 train questions
    of_a = "| s/a | confidences | 4,000 | 720,000 | 80,000 | 15.20 |"
    of_z = "| s/z | confidences | 300 | 54,000 | 9,000 | 0.00 |"
    assert api_table(config, jobs_of(jobs)).splitlines()[3:5] == [of_a, of_z]


def test_the_cost_of_samples_by_hand():
    api = {"samples_per_request": 2, "price_input": 2, "price_output": 10}
    config = served(at("a", **api), {"decoding": {"max_new_tokens": 20}})
    config["datasets"]["triviaqa"]["test"] = [9_000, 10_000]
    # 1,000 test questions with 5 samples each: by twos 3 requests each, of 45 + 5 x 30 = 195
    # tokens, and 1,000 x 5 x 20 tokens of answers; 0.585 x 2 + 0.1 x 10 = 2.17
    line = "| s/a | samples | 3,000 | 585,000 | 100,000 | 2.17 |"
    # one by one 5 requests each; no price
    other = "| s/b | samples | 5,000 | 975,000 | 100,000 | 0.00 |"
    total = "| all |  | 8,000 | 1,560,000 | 200,000 | 2.17 |"
    assert api_table(config, jobs_of(JOBS)).splitlines()[3:] == [line, other, total]
    assert api_table(config, jobs_of(JOBS)[2:]) == ""
