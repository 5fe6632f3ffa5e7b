"""Checkpoints behind an API: their keys in the config, their requests and their costs."""

from pathlib import Path

import pytest
import yaml
from configs import overlaid

from study.check import check_config
from study.inputs import Inputs
from study.resources import JobResources
from study.schema import ConfigError
from study.study import Study

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
""")


def served(*changes):
    return overlaid(SERVED, *changes)


def api_of(checkpoint, **api):
    return {"models": {"s": {"checkpoints": {checkpoint: {"api": api}}}}}


def study_of(**changes):
    return {"study": changes}


def test_a_served_model_needs_only_an_address_and_a_name():
    check_config(served())
    study = Study(served())
    assert study.served == {"s": ["z", "a", "b"]}
    assert study.decides_answers("s", "a") == {"base_url": "http://a/v1", "model": "m-1"}
    reach = Inputs(study, Path()).api_settings("s", "b")
    assert reach["api_key_env"] == "B_KEY"
    assert reach["section"] == "models.s.checkpoints.b.api"
    assert (reach["max_requests"], reach["max_cost"]) == (100_000, None)


def test_only_answers_that_an_estimator_reads_are_requested():
    study = Study(served())
    assert study.checkpoints("s") == ["a", "b"]
    assert study.splits_shown("s", "a", "triviaqa") == ["test"]
    # Estimators that a complete table adds are not paid for.
    tables = study_of(tables=["all_estimators", "beyond_the_paper"], complete_tables=True)
    names = {row.estimator for row in Study(served(tables)).evaluated}
    assert names == {"self_consistency", "end_correct"}
    fitted = Study(served(study_of(estimators=["self_consistency_posthoc"])))
    assert fitted.checkpoints("s") == ["z", "a", "b"]
    assert fitted.splits_shown("s", "z", "triviaqa") == ["train"]


def test_a_model_can_have_served_and_local_checkpoints():
    local = {"models": {"s": {"repo": "org/m", "checkpoints": {"a": {"revision": "r"}}}}}
    config = served(local)
    del config["models"]["s"]["checkpoints"]["a"]["api"]
    check_config(config)
    assert Study(config).served == {"s": ["z", "b"]}
    job = {"model": "s", "checkpoint": "b", "dataset": "triviaqa", "split": "test"}
    resources = JobResources(Study(config))
    assert resources.request("cluster_answers", job).gpu == 1  # for the entailment model


PRICES = {"price_input": 1, "price_output": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            api_of("a", base_url="https://me:secret@a/v1"),
            "s.checkpoints.a.api.base_url is not as",
        ),
        (api_of("a", model=""), "checkpoints.a.api.model"),
        (api_of("a", modle="x"), "modle is not a known key; did you mean 'model'"),
        (api_of("a", samples_per_request=0), "samples_per_request"),
        (api_of("a", request={"n": 5}), "checkpoints.a.api.request.n is 5, but it follows"),
        (
            api_of("a", logprobs=True, reasoning="drop"),
            "api.reasoning is .drop., but of a model that thinks first the answer's own",
        ),
        (api_of("a", model="m-2"), "checkpoints.a and b ask one model at one address; correct"),
        (
            api_of("a", **PRICES),
            "a.api has prices, but api.max_cost is null; set it to the most",
        ),
        ({"api": {"max_cost": 5}}, "max_cost is 5, but models.s.checkpoints.z.api lacks pri"),
        ({"decoding": {"strategy": "beams"}}, "decoding.strategy is beams, but models.s.ch"),
        (
            {"models": {"s": {"checkpoints": {"a": {"revision": "main"}}}}},
            "a.revision is .main., but the checkpoint has api and one source of answers",
        ),
        ({"models": {"s": {"checkpoints": {"a": {"api": None}}}}}, "checkpoints.a.api is None"),
        (
            {"analyses": {"weight_similarity": {"models": ["s"]}}},
            "analyses.weight_similarity.models names 's', but its weights are behind an API",
        ),
        (study_of(estimators=["oracle"]), "estimators.oracle needs the weights .*s.ch.*z is"),
        (
            study_of(estimators=["perplexity"]),
            "perplexity needs the .* set models.s.checkpoints.z.api.logprobs to true if the",
        ),
        (
            study_of(estimators=["min_token_probability"]),
            "needs the min_logprob of each answer, which .*z.api does not give; drop it",
        ),
    ],
)
def test_wrong_keys_of_an_api_and_estimators_that_it_cannot_serve_are_refused(change, message):
    estimators = {"study": {"estimators": ["end_correct"]}}
    with pytest.raises(ConfigError, match=message) as error:
        check_config(served(estimators, change))
    assert "secret" not in str(error.value) and "\n" not in str(error.value)


def test_estimators_of_replies_and_of_returned_logprobs_are_accepted():
    check_config(
        served(study_of(estimators=["said_probability", "said_guesses", "said_words"]))
    )
    give = [api_of(name, logprobs=True) for name in "zab"]
    check_config(served(*give, study_of(estimators=["perplexity", "sequence_probability"])))
    paid = [api_of(name, **PRICES) for name in "ab"]
    config = served(*paid, {"api": {"max_cost": 5}})
    with pytest.raises(ConfigError, match=r"z\.api lacks price_input"):
        check_config(served(*paid, {"api": {"max_cost": 5}}, api_of("z", price_output=1)))
    check_config(served(api_of("z", **PRICES), *paid, {"api": {"max_cost": 5}}))
    assert Inputs(Study(config), Path()).api_settings("s", "a")["max_cost"] == 5
    control = served(
        api_of("b", model="m-1"), {"models": {"s": {"checkpoints": {"b": {"seed": 3}}}}}
    )
    check_config(control)
    assert [Inputs(Study(control), Path()).draws("s", name)["seed"] for name in "ab"] == [17, 3]
    same = {"models": {"s": {"checkpoints": {"a": {"allow_identical_weights": True}}}}}
    check_config(served(api_of("b", model="m-1"), same))


def costs_at_servers(config, rule, *jobs):
    """Return requests and cost of jobs of model s and TriviaQA."""
    resources = JobResources(Study(config))
    return [
        resources.server_use(rule, {"model": "s", "dataset": "triviaqa", **job}) for job in jobs
    ]


def test_the_cost_of_stated_confidences_equals_a_calculation_by_hand():
    config = served(api_of("a", samples_per_request=4, price_input=10, price_output=100))
    config["datasets"]["triviaqa"] |= {"test": [9_000, 10_000], "train": [0, 300]}
    guesses, words, earlier = costs_at_servers(
        config,
        "ask_server",
        {"checkpoint": "a", "split": "test", "estimator": "p_true_sampled"},
        {"checkpoint": "a", "split": "test", "estimator": "said_words"},
        {"checkpoint": "z", "split": "train", "estimator": "said_words"},
    )
    # A request has 120 + 45 + 15 = 180 tokens. p_true_sampled: 3 requests for each of 1,000
    # questions, 10 replies of up to 5 tokens: 3,000 x 180 x 10 + 1,000 x 50 x 100
    assert guesses == (3_000, pytest.approx(10.4))
    # said_words: one request, up to 30 tokens: 1,000 x 180 x 10 + 1,000 x 30 x 100
    assert words == (1_000, pytest.approx(4.8))
    assert earlier == (300, 0)


def test_the_cost_of_samples_equals_a_calculation_by_hand():
    api = {"samples_per_request": 2, "price_input": 2, "price_output": 10}
    config = served(api_of("a", **api), {"decoding": {"max_new_tokens": 20}})
    config["datasets"]["triviaqa"]["test"] = [9_000, 10_000]
    jobs = [{"checkpoint": name, "split": "test"} for name in "ab"]
    # a: 1,000 questions x 5 samples, two per request: 3,000 requests of 45 + 5 x 30 = 195
    # tokens, 1,000 x 5 x 20 tokens of answers: 0.585 x 2 + 0.1 x 10 = 2.17
    # b: single samples, no price
    costs = costs_at_servers(config, "sample_from_server", *jobs)
    assert costs == [(3_000, pytest.approx(2.17)), (5_000, 0)]
    table = JobResources(Study(config)).table(
        [("sample_from_server", {"model": "s", "dataset": "triviaqa", **job}) for job in jobs]
    )
    assert "| sample_from_server | 2 | 8,000 | 0.0 |  |  |" in table
