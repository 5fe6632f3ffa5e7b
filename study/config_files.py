"""Refuse a config file in which a key stands twice: YAML would take the last one in silence."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from study.check import LOADER, ConfigError


def refuse_repeated_keys(paths: Iterable[str | Path]) -> None:
    """Raise `ConfigError` for the first key that stands twice in a mapping of a file."""
    for path in paths:
        root = yaml.compose(Path(path).read_text(encoding="utf-8"), Loader=LOADER)
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
