"""Check the fields of prompts, such as {question}, before anybody is asked."""

import re
from collections.abc import Collection, Sequence

_FIELD = re.compile(r"\{([A-Za-z_]\w*)\}")


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
