"""Confidences as people write them: on another scale, in words, as uncertainty, or missing."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.predictions import drop_noise
from persistcal.store.user_files import (
    DIGITS,
    UserTableError,
    name_files_in_errors,
    read_file,
    round_digits,
    round_narrow,
)

Array = NDArray[np.float64]

# Texts of a missing value, also as spreadsheets and R write them
MISSING = {"", "nan", "-nan", "na", "#na", "n/a", "#n/a", "<na>", "null", "none"}
MOST_WORDS = 12  # that a message lists
MOST_SHARE = 0.5  # on a wide scale, the largest share of positive values that are below 1
LEAST_WIDE = 5.0  # the smallest upper end of a scale that needs a confidence above 1
_NUMBER = re.compile(r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_RANGE = re.compile(r"(?:(?P<low>[\d.]+):)?(?P<high>[\d.]+)", re.ASCII)


@dataclass(frozen=True)
class Scale:
    """The scale of a column of confidences; `words` have values in [0, 1]."""

    low: float = 0.0
    high: float = 1.0
    words: Mapping[str, float] = field(default_factory=dict)
    is_uncertainty: bool = False

    def number(self, value: object) -> float:
        """Return a value as a number on this scale, NaN if it is missing or cannot be read.

        >>> scale = Scale(0, 100, {"sure": 0.9})
        >>> [scale.number(value) for value in ("82", "82,5", "82 %", "Sure", 7, "perhaps")]
        [82.0, 82.5, 82.0, 90.0, 7.0, nan]
        """
        text = _plain(value)
        if text in self.words:
            return self._raw(self.words[text])
        share = text.removesuffix("%").rstrip()
        if isinstance(value, bool) or not _NUMBER.fullmatch(share):
            return np.nan
        number = float(share.replace(",", "."))
        return number if share == text else self._raw(number / 100)

    def _raw(self, probability: float) -> float:
        return self.low + probability * (self.high - self.low)

    def holds(self, numbers: Array) -> NDArray[np.bool_]:
        """Return which numbers are on the scale."""
        return (numbers >= self.low) & (numbers <= self.high)

    def read(self, value: object) -> float | None:
        """Return a value as a number on this scale, or None if it is not on it."""
        number = self.number(value)
        return number if self.low <= number <= self.high else None

    def confidence(self, numbers: Array) -> Array:
        """Return numbers on this scale as confidences."""
        shares = numbers
        if (self.low, self.high) != (0, 1):
            shares = (numbers - self.low) / (self.high - self.low)
        return 1 - shares if self.is_uncertainty else shares

    def check_groups(self, numbers: Array, names: pd.DataFrame) -> None:
        """Refuse numbers of a group that are probabilities, while the scale is wide.

        A group has equal `names`, such as a checkpoint and an estimator.
        """
        if self.low != 0 or self.high < LEAST_WIDE:
            return
        kinds = {"present": numbers > 0, "above": numbers > 1}
        counted = pd.DataFrame(kinds | {"fraction": kinds["present"] & (numbers < 1)})
        keys = [names[name].reset_index(drop=True) for name in names]
        for group, n in counted.groupby(keys, observed=True).sum().iterrows():
            is_few = n["fraction"] > MOST_SHARE * n["present"] and not self.is_uncertainty
            if n["present"] and (is_few or not n["above"]):
                texts = map(str, group if isinstance(group, tuple) else [group])
                found = f"only {n['above']:,} of {n['present']:,}" if n["above"] else "no"
                raise UserTableError(
                    f"{found} confidence of {', '.join(texts)} is above 1, so they are not on "
                    f"the scale 0 to {self.high:g}; leave --scale out, or write all "
                    "confidences on one scale"
                )

    def describe(self) -> list[str]:
        """Return a note on confidences that are not written as probabilities."""
        if self == PROBABILITIES:
            return []
        kinds = [f"on the scale {self.low:g} to {self.high:g}"] * (
            (self.low, self.high) != (0, 1)
        )
        kinds += [f"in {len(self.words)} words"] * bool(self.words)
        kinds += ["as 1 minus an uncertainty"] * self.is_uncertainty
        return [f"Confidences are read {' and '.join(kinds)}."]


PROBABILITIES = Scale()


def settle(
    numbers: Array, of: pd.DataFrame, scale: Scale = PROBABILITIES, narrow: Collection[str] = ()
) -> Array:
    """Return the numbers of all files as confidences, of one precision per estimator.

    `of` has the version and the `estimator` of each. An estimator is rounded if it is in
    `narrow`, or some version of it shows that it was float32.
    """
    scale.check_groups(numbers, of)
    version = of.groupby([*of], sort=False, observed=True).ngroup().to_numpy()
    estimators = pd.factorize(of["estimator"])[0]
    rounded = round_narrow(numbers, "confidence", estimators, version)
    if narrow and (is_narrow := of["estimator"].isin(narrow).to_numpy()).any():
        rounded = np.where(is_narrow, round_digits(rounded, DIGITS["float32"]), rounded)
    return drop_noise(scale.confidence(rounded))


def parse_scale(text: str | None, words: str | None, *, is_uncertainty: bool) -> Scale:
    """Return the scale of the options ``--scale`` and ``--words``.

    >>> parse_scale("1:5", None, is_uncertainty=False)
    Scale(low=1.0, high=5.0, words={}, is_uncertainty=False)
    """
    low, high = 0.0, 1.0
    if text is not None:
        match = _RANGE.fullmatch(text.strip())
        if not match or float(match["low"] or 0) >= float(match["high"]):
            raise ValueError(
                f"--scale is {text!r}; write the greatest value, such as 100, or both ends, "
                "such as 1:5."
            )
        low, high = float(match["low"] or 0), float(match["high"])
    return Scale(low, high, read_words(words) if words else {}, is_uncertainty)


def read_words(file: str) -> dict[str, float]:
    """Return the confidence of each word in a file with the columns word and confidence."""
    with name_files_in_errors(file):
        rows = read_file(file, known_names=("word", "confidence"))
    if not {"word", "confidence"} <= set(rows):
        raise UserTableError(f"{file}: needs the columns word and confidence; add them.")
    words: dict[str, float] = {}
    for word, value in zip(rows["word"], rows["confidence"], strict=True):
        number, key = PROBABILITIES.number(value), _plain(word)
        if not 0 <= number <= 1:
            raise UserTableError(
                f"{file}: the confidence of {word!r} is {value!r}; give a number from 0 to 1."
            )
        if words.setdefault(key, number) != number:
            raise UserTableError(f"{file}: the word {word!r} has two confidences; keep one.")
    return words


def _plain(value: object) -> str:
    """Return a text without case, spaces around it, and full-width digits and signs."""
    return unicodedata.normalize("NFKC", str(value)).strip().casefold()


def is_missing(value: object) -> bool:
    """Return whether a value of a file is a missing confidence or label."""
    return value is None or value != value or str(value).strip().casefold() in MISSING


def missing_error(counts: Mapping[str, int], *, first: str) -> UserTableError:
    """Return the refusal of missing values, with the number of rows by column."""
    listed = " and ".join(f"{name} is missing in {n:,} rows" for name, n in counts.items() if n)
    half = " --missing 0.5 counts a missing confidence as 0.5." * (not counts.get("correct"))
    return UserTableError(
        f"{listed}, first in {first}; fill them in, or give --missing drop, which leaves these "
        f"answers out.{half}".removesuffix(".")
    )


def _scale_of(values: Sequence[object], numbers: Array) -> str:
    """Return the scale of `values`, or "" for probabilities; `numbers` are distinct.

    Values slightly above 1, or a few large ones among probabilities, make no other scale.
    """
    if not len(numbers) or PROBABILITIES.holds(numbers).all() or numbers.min() < 0:
        return ""
    top = numbers.max()
    if not np.isfinite(top) or _share_of_fractions(values) > MOST_SHARE:
        return ""
    if (numbers % 1 == 0).all() and top <= 5:
        return "1:5" if numbers.min() >= 1 else "5"
    if top < LEAST_WIDE / 2:
        return ""
    return str(next((size for size in (10, 100) if top <= size), int(np.ceil(top))))


def _share_of_fractions(values: Iterable[object]) -> float:
    """Return which share of the numbers above 0 are below 1."""
    numbers = np.array([PROBABILITIES.number(value) for value in values])
    return float(np.mean(numbers[numbers > 0] < 1)) if (numbers > 0).any() else 0.0


def explain_scale(values: Sequence[object]) -> tuple[str, str]:
    """Explain why a column has no valid confidences, and return the scale that reads it.

    >>> [explain_scale(texts)[1] for texts in (["12", "82", "100"], ["1", "5", "3"])]
    ['100', '1:5']
    >>> explain_scale(["0.2", "1.0000001"])[1], explain_scale(["0.2", "0.7", "0.4", "47.9"])[1]
    ('', '')
    """
    present = [value for value in dict.fromkeys(values) if not is_missing(value)]
    numbers = np.array([PROBABILITIES.number(value) for value in present])
    words = [str(v) for v, number in zip(present, numbers, strict=True) if np.isnan(number)]
    if words:
        listed = ", ".join(sorted(words)[:MOST_WORDS]) + ", …" * (len(words) > MOST_WORDS)
        return (
            "give --words FILE, a CSV file with the columns word and confidence and a row for "
            f"each of: {listed}"
        ), ""
    span = f"the values go from {numbers.min():.9g} to {numbers.max():.9g}"
    if scale := _scale_of(values, numbers):
        least = " (--scale 1:10 if 1 is the least)" * bool(scale == "10" and numbers.min() >= 1)
        return f"{span}, where {scale.split(':')[-1]} can be certainty{least}", scale
    below = numbers[numbers < 0]
    if len(below) == 1 and below[0] % 1 == 0:
        return f"{span}; if {below[0]:g} means that there is none, leave it empty", ""
    if len(below):
        return (
            f"{span}; give a number in [0, 1], such as the exponential of a log-probability",
            "",
        )
    wrong = sum(PROBABILITIES.number(value) > 1 for value in values)
    scales = ", or in another scale its ends, such as --scale 1:5"
    counted = f" ({wrong:,} of {len(values):,} values are above 1)"
    is_few = _share_of_fractions(values) > MOST_SHARE
    return f"{span}; give a number in [0, 1]{counted if is_few else scales}", ""
