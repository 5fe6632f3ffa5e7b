"""Refuse what YAML would take for something else in silence: repeated keys, 010, 1:30."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from study.schema import LOADER, ConfigError

# Octal numbers, and numbers to the base of 60: 010 is 8 and 1:30 is 90 in YAML 1.1.
_ODD_NUMBER = re.compile(r"[-+]?(?:0[0-7_]+|[1-9][\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?)")


def refuse_misread(paths: Iterable[str | Path]) -> None:
    """Raise `ConfigError` for the first thing in a file that does not mean what it looks like.

    That is a key that stands twice in a mapping, of which the last one would count, and
    numbers that are read as other ones.
    """
    for path in paths:
        root = yaml.compose(Path(path).read_text(encoding="utf-8"), Loader=LOADER)
        for line, said, read in _misread(root):
            raise ConfigError(
                f"{path}: line {line} has {said}, which YAML reads as the number {read}; put "
                "it in quotes if it is a name, or write it without leading zeros and colons."
            )
        for place, first, again in _repeated(root, ()):
            raise ConfigError(
                f"{path}: {'.'.join(place)} stands in line {first} and again in line {again}, "
                "and only the last would count; write it once."
            )


def _repeated(
    node: yaml.Node | None, place: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Yield place, line and second line of each repeated key at or below a node."""
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _repeated(item, (*place, str(number)))
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.value in lines:
                yield (*place, str(key.value)), lines[key.value], line
            lines[str(key.value)] = line
            yield from _repeated(value, (*place, str(key.value)))


def _misread(node: yaml.Node | None) -> Iterator[tuple[int, str, object]]:
    """Yield line and text of numbers in a node that are not what they look like, and what."""
    if isinstance(node, yaml.ScalarNode):
        if node.tag.endswith((":int", ":float")) and _ODD_NUMBER.fullmatch(node.value):
            value = yaml.load(node.value, Loader=LOADER)
            yield node.start_mark.line + 1, str(node.value), value
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _misread(item)
    elif isinstance(node, yaml.MappingNode):
        for pair in node.value:
            for part in pair:
                yield from _misread(part)
