"""Read a confidence from replies in words: probabilities, guesses, phrases.

Each reader returns None if a reply can be read in no way or in several ways.
"""

import logging
import re
from collections.abc import Callable, Collection, Mapping
from unicodedata import category

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import KEY, Evidence
from persistcal.models.prompts import OPEN, THOUGHTS

log = logging.getLogger(__name__)

_NUMBER = re.compile(
    r"(?<![\w.,/−-])(\d+(?:\.\d*)?|\.\d+)"
    r"(?:\s*(%|percent\b|per cent\b)|\s*/\s*(\d+(?:\.\d+)?))?(?![\w%/-]|[.,]\d)"
)

_DIGIT = re.compile(r"(?<![A-Za-z])\d")

_GUESS = re.compile(r"\b([GP])(\d+)\s*[:.)]", re.IGNORECASE)

# Words next to the clause of an expression that turn a statement against the answer
_DOUBTFUL = re.compile(
    r"""n['’]?t\b | [<>≤≥≦≧⩽⩾±≠] | \#\s*\+ | \b(?:
    not|no|non|never|neither|nor|none|cannot|without|hardly|barely|scarcely|seldom|rarely
    |anything|far|too|if|unless|except|but\s+for|otherwise|instead|else|other|another
    |different|alternative\w*|contrary|opposite|against
    |wrong\w*|false\w*|err(?:s|or|ors|oneous\w*)?|mist\w*|fail\w*|doubt\w*|risk\w*|miss\w*
    |mislead\w*|reject\w*|den(?:y|ies|ied)|lies?
    |(?:in-?|(?:un|im|ir|dis|mis|non)[-\s]*)
      (?:correct|tru|likel|sure|certain|accura|valid|prob|plausib|right|reliab|confiden|agree
      |belie|possib|proper)\w*
    |at\s+(?:least|most|best|worst)|(?:max|min)(?:imum|imal|imally)?|exceed\w*|bound\w*|range\w*
    |limit\w*|between|within|up\s?to|upwards?|upper|lower|higher|greater|larger|smaller|fewer
    |more|less|than|over|under|beyond|short\s+of
    |(?:above|below|near|nearly|almost|close\s+to)\W+(?:\w+\s+){0,2}\#
    )(?!\w)""",
    re.VERBOSE,
)

_WRAPPED = re.compile(
    r"<([^<>]*)>|->"
)  # a placeholder of a prompt, as it was filled in; an arrow

# Words that leave an expression, or a bare 0 or 1, as it is
_NEUTRAL = set(
    """a b an answer as be by confidence correct expression final for i i'd i'm is it it's its
    likelihood my of probability proposed rating right say score that that's the think this to
    true with would""".split()
)

# Words that can be around a number, too; any other word makes a reply unreadable
_AROUND_NUMBERS = _NEUTRAL | set(
    """about absolutely am approximately around based believe can certain certainly certainty
    chance completely confidently degree estimate estimated extremely fairly fully give given
    guess have here high in level likely most on p percent percentage pretty quite roughly say
    should so state stated sure there there's totally value very was yes""".split()
)
_AROUND_NUMBERS |= {"here's", "i've", "okay", "ok", "well", "thank", "thanks", "you"}
# A bare 0 or 1 that can be the answer itself
_AS_ANSWER = re.compile(r"\banswer(?:['’]s)?(?:\W+(?:is|as|be|would|a|an|the))*\W*#")
# A line of its own against the answer, before the line with the number
_REJECTS = re.compile(
    r"(?:(?:no|it|it['’]?s|is|this|that|the|my|proposed|answer|but)\W+)*"
    r"(?:no|not\W+(?:correct|right|true)|wrong|false|incorrect|untrue|mistaken)\W*"
)
# Punctuation that leaves a number as it is: no comparison, plus, minus or negation sign
_HARMLESS = re.compile(r"(?:!(?![\w#])|[\w\s.,:;~≈∼#()\[\]{}\"'“”‘’„«»=→|/–—✓✔✅-])*")

_CLAUSE = re.compile(r"[,;:!.]+(?:\s|$)|\s[–—-]\s")

_MARKUP = str.maketrans("", "", "*_`")


def answer_part(reply: str) -> str:
    """Return a reply without the reasoning before it, and without Markdown emphasis.

    >>> answer_part("<think>0.9?</think> **0.7**"), answer_part("<think>0.9")
    ('0.7', '')
    """
    text = THOUGHTS.sub("", reply).strip()
    return "" if text.startswith(OPEN) else text.translate(_MARKUP)


def probability(reply: str) -> float | None:
    """Return the probability in the first line with a number, or None.

    A probability is a number from 0 to 1, a percentage or a fraction. A line with several
    different numbers is not read, nor a number above 1 without a unit, nor a line with words
    besides harmless ones such as "I am about # sure", as they might contradict the answer or
    give a bound.

    >>> [probability(text) for text in ("0.85.", "Sure, 85 %", "I say 4/5")]
    [0.85, 0.85, 0.8]
    >>> [probability(text) for text in ("85", "0.6 or 0.7", "-0.5", "0,8", "unknown")]
    [None, None, None, None, None]
    >>> [probability(text) for text in ("90% sure it's wrong", "< 0.1", "85 % falsch")]
    [None, None, None]
    """
    lines = [line.strip() for line in answer_part(reply).splitlines()]
    place = next((i for i, line in enumerate(lines) if _DIGIT.search(line)), None)
    if place is None:
        return None
    line = _WRAPPED.sub(r" \1 ", lines[place].lower())
    values = [_value(*match.groups()) for match in _NUMBER.finditer(line)]
    rest = _NUMBER.sub("#", line)
    if len(set(values)) != 1 or _DIGIT.search(rest) or not 0 <= values[0] <= 1:
        return None
    # A heading before the number and a continued sentence after it belong to the number.
    heading = next((text for text in reversed(lines[:place]) if text), "")
    following = lines[place + 1] if lines[place + 1 :] else ""
    if _REJECTS.fullmatch(heading.lower()):
        return None
    statement = f"{heading.lower()} {rest}" if heading.endswith(":") else rest
    whole = f"{statement} {following.lower()}" if following[:1].islower() else statement
    whole = whole.replace("->", "→").replace("per cent", "percent")
    if not _HARMLESS.fullmatch(whole) or not _is_neutral(whole, _AROUND_NUMBERS):
        return None
    is_bare = all(match[0].rstrip(".").isdecimal() for match in _NUMBER.finditer(line))
    if is_bare and (not _is_neutral(rest) or _AS_ANSWER.search(rest)):
        return None
    return values[0]


def _is_neutral(text: str, words: Collection[str] = _NEUTRAL) -> bool:
    """Return whether all words of a text leave the meaning of neighbours unchanged."""
    found = re.findall(r"[^\W_]+(?:['’-][^\W_]+)*|\w+-|-\w+", text)
    return {word.replace("’", "'") for word in found} <= set(words)


def _value(number: str, percent: str | None, parts: str | None) -> float:
    """Return a number, divided by 100 or by `parts`; NaN if it is not a share."""
    is_split = parts and float(number) and float(number) + float(parts) in (1, 100)
    if parts and (is_split or not float(parts)):  # 50/50 is not 1, nor is 40/60 two thirds
        return np.nan
    return float(number) / (float(parts) if parts else 100 if percent else 1)


def guesses(reply: str) -> list[tuple[str, float | None]]:
    r"""Return the guesses of a reply such as ``G1: Paris P1: 0.8``, with their probabilities.

    Repeated guess numbers are left out; base models often continue after their answer.

    >>> guesses("G1: Paris\nP1: 0.8\nG2: Rome\nP2: ?\nG1: Oslo")
    [('Paris', 0.8), ('Rome', None)]
    """
    stated = answer_part(reply)
    marks = list(_GUESS.finditer(stated))
    parts: dict[tuple[str, str], str] = {}
    ends = [*(mark.start() for mark in marks[1:]), len(stated)] if marks else []
    for mark, end in zip(marks, ends, strict=True):
        text = stated[mark.end() : end].strip()
        parts.setdefault((mark[1].upper(), mark[2]), text.split("\n", 1)[0].strip())
    return [
        (text, probability(parts.get(("P", number), "")))
        for (kind, number), text in parts.items()
        if kind == "G" and text
    ]


def on_scale(reply: str, scale: Mapping[str, float]) -> float | None:
    """Return the probability of the one expression of `scale` in a reply's first line.

    The result is None without an expression, with several expressions of different
    probabilities, if the clause has words other than "it is", "I would say" and similar ones,
    or if the line might negate the expression.

    >>> scale = {"likely": 0.7, "highly unlikely": 0.05, "unlikely": 0.2}
    >>> [on_scale(text, scale) for text in ("Highly unlikely.", "It is likely")]
    [0.05, 0.7]
    >>> [on_scale(text, scale) for text in ("not likely", "far from likely", "less likely")]
    [None, None, None]
    """
    first = next(iter(answer_part(reply).casefold().splitlines()), "")
    by_word = {word.strip().casefold(): value for word, value in scale.items()}
    if not by_word or "" in by_word:
        raise ValueError("scale is empty or has an empty expression; give several expressions")
    longest_first = sorted(by_word, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")
    stated = {by_word[match[0]] for match in pattern.finditer(first)}
    clauses = _CLAUSE.split(pattern.sub(" # ", first))
    if len(stated) != 1 or "?" in first or any(map(_DOUBTFUL.search, clauses)):
        return None
    # Signs such as ¬, a cross or a thumb can turn a statement.
    if any(c == "¬" or (category(c) == "So" and c not in "✓✔✅") for c in first):
        return None
    if re.search(r"!\w", first):
        return None
    if not all(_is_neutral(clause) for clause in clauses if "#" in clause):
        return None
    return stated.pop()


def rate_replies(
    answers: pd.DataFrame, evidence: Evidence, read: Callable[[str, "pd.Series"], float | None]
) -> pd.Series:
    """Return the mean of the values that `read` finds in the replies about each answer.

    Unreadable replies are left out, and the log counts them. The confidence is missing if all
    replies are unreadable.
    """
    assert evidence.replies is not None
    texts = evidence.replies.groupby(KEY, sort=False)["text"].agg(list)
    asked = texts.reindex(pd.MultiIndex.from_frame(answers[KEY]))
    means: list[float | None] = []
    unread: list[str] = []
    for (_, row), replies in zip(answers.iterrows(), asked, strict=True):
        values = [read(text, row) for text in replies]
        readable = [value for value in values if value is not None]
        unread += [text for text, value in zip(replies, values, strict=True) if value is None]
        means.append(float(np.mean(readable)) if readable else None)
    if unread:
        examples = ", ".join(f"{text[:60]!r}" for text in dict.fromkeys(unread[:3]))
        n = sum(map(len, asked))
        log.warning("%d of %d replies are unreadable, such as %s", len(unread), n, examples)
    return pd.Series(means, answers.index, dtype="Float64")
