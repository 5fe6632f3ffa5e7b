"""Fields of prompts, such as {question}: they are checked before anybody is asked."""

import re
from collections.abc import Collection, Mapping, Sequence

_FIELD = re.compile(r"\{([A-Za-z_]\w*)\}")


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace the fields of `template` by their values; other braces stay unchanged.

    All are replaced in one pass, because a value can contain the name of a field.

    >>> fill("{a} {b} {c}", {"a": "{b}", "b": "2"})
    '{b} 2 {c}'
    """
    return _FIELD.sub(lambda match: values.get(match[1], match[0]), template)


def check_fields(
    template: str, name: str, needed: Sequence[str], optional: Collection[str] = ()
) -> None:
    """Refuse a prompt with an unknown, repeated or missing field; other braces are text.

    >>> check_fields("{question} {", "prompts.confidence", ["question"])
    >>> check_fields("{question} {qestion}", "prompts.confidence", ["question"])
    Traceback (most recent call last):
    ValueError: prompts.confidence has the unknown field {qestion}; known are {question}
    """
    fields = _FIELD.findall(template)
    allowed = [*needed, *optional]
    for field in fields:
        if field not in allowed:
            listed = ", ".join(f"{{{name}}}" for name in allowed) or "none"
            raise ValueError(f"{name} has the unknown field {{{field}}}; known are {listed}")
        if (times := fields.count(field)) > 1:
            raise ValueError(f"{name} has the field {{{field}}} {times} times; keep one")
    for field in needed:
        if field not in fields:
            raise ValueError(f"{name} lacks the field {{{field}}}; add it")
