"""Confidence from the probabilities of the answer's tokens or of the options."""

import numpy as np
import pandas as pd
from scipy.special import entr

from persistcal.confidence.evidence import KEY, Evidence
from persistcal.confidence.uncertainty import Candidates, of_best_beam, of_candidates


@of_best_beam
def sequence_probability(best: pd.DataFrame) -> pd.Series:
    """Return the probability of the best beam with the prediction's text."""
    return np.exp(best["logprob"])


@of_best_beam
def perplexity(best: pd.DataFrame) -> pd.Series:
    """Return exp of the mean log-probability of the best beam's tokens: one over perplexity.

    Fomicheva et al., "Unsupervised Quality Estimation for Neural Machine
    Translation", TACL 2020. lm-polygraph: Perplexity.
    """
    return pd.Series(np.exp(best["logprob"] / best["n_tokens"]))


@of_best_beam
def mean_token_entropy(best: pd.DataFrame) -> pd.Series:
    """Return exp of minus the mean entropy of the distributions of the best beam's tokens.

    Fomicheva et al., "Unsupervised Quality Estimation for Neural Machine
    Translation", TACL 2020. lm-polygraph: MeanTokenEntropy.
    """
    return np.exp(-best["entropy"])


@of_best_beam
def min_token_probability(best: pd.DataFrame) -> pd.Series:
    """Return the probability of the best beam's least probable token.

    Manakul, Liusie and Gales, "SelfCheckGPT", EMNLP 2023: exp of minus their Max(-log p).
    uqlm: min_probability.
    """
    return np.exp(best["min_logprob"])


@of_best_beam
def self_certainty(best: pd.DataFrame) -> pd.Series:
    """Return s / (1 + s) of the best beam's self-certainty s, which has no greatest value.

    Kang, Zhao and Song, "Scalable Best-of-N Selection for Large Language Models via
    Self-Certainty", 2025, arXiv:2502.18581. lm-polygraph: SelfCertainty.
    """
    return best["self_certainty"] / (1 + best["self_certainty"])


@of_best_beam
def probability_margin(best: pd.DataFrame) -> pd.Series:
    """Return the mean difference between the two greatest probabilities, over tokens.

    The mean is over the tokens of the best beam.

    Farr et al., "RED-CT: A Systems Design Methodology for Using LLM-labeled Data to Train and
    Deploy Edge Classifiers for Computational Social Science", 2024, arXiv:2408.08217. uqlm:
    probability_margin.
    """
    return best["margin"]


@of_candidates
def sequence_entropy(candidates: Candidates) -> float:
    """Return exp of minus the Monte-Carlo entropy of the model's answers.

    Malinin and Gales, "Uncertainty Estimation in Autoregressive Structured
    Prediction", ICLR 2021. lm-polygraph: MonteCarloSequenceEntropy, of samples; beams
    are weighted by their probability.
    """
    return np.exp(np.dot(candidates.weights, candidates.logprobs))


def option_probability(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the softmax of the chosen option's score over the options of its question."""
    # Summed floats can exceed 1 by a rounding error.
    return answers["probability"].clip(upper=1)


def option_margin(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the difference between the two greatest probabilities.

    Scheffer, Decomain and Wrobel, "Active Hidden Markov Models for Information
    Extraction", IDA 2001: the margin.
    """
    seconds = evidence.clusters.loc[evidence.clusters["cluster"] == 1, [*KEY, "probability"]]
    runner_up = answers[KEY].merge(seconds, how="left", on=KEY)["probability"].fillna(0)
    return (answers["probability"] - runner_up.to_numpy()).clip(0, 1)


def option_entropy(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return one minus the options' entropy divided by the logarithm of their number.

    The division makes questions with different numbers of options comparable.
    """
    shares = evidence.clusters[[*KEY, "probability"]]
    shares = shares.assign(entropy=entr(shares["probability"]))
    totals = shares.groupby(KEY, sort=False)["entropy"].agg(["sum", "size"])
    confidence = 1 - totals["sum"] / np.log(totals["size"].clip(lower=2))
    keys = pd.MultiIndex.from_frame(answers[KEY])
    return pd.Series(confidence.loc[keys].to_numpy(), answers.index).clip(0, 1)
