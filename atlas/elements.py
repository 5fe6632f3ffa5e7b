"""Real facts about chemical elements, and questions about them.

The data are from the package `periodictable` (public domain): names, symbols,
atomic numbers and crystal structures. Period, group and block follow from the number.
"""

from bisect import bisect_left
from collections import defaultdict

import periodictable

from atlas.facts import Fact

QUESTION_FORMS = {
    "element-symbol": "What is the chemical symbol of {}?",
    "symbol-element": "Which element has the symbol {}?",
    "element-number": "What is the atomic number of {}?",
    "element-period": "Which period is {} in?",
    "element-group": "Which group is {} in?",
    "element-block": "Which block is {} in?",
    "element-structure": "What crystal structure does {} have?",
}

ALIASES = {"aluminum": ("aluminium",), "cesium": ("caesium",), "sulfur": ("sulphur",)}

# Structures of the solid element; the package has no structure for some, and "atom" or "diatom"
# for gases.
STRUCTURES = {
    "fcc": ("face-centered cubic", "fcc"),
    "hcp": ("hexagonal close-packed", "hcp", "hexagonal"),
    "BCC": ("body-centered cubic", "bcc"),
    "SC": ("simple cubic", "primitive cubic"),
    "Cubic": ("cubic",),
    "Diamond": ("diamond cubic", "diamond"),
    "Monoclinic": ("monoclinic",),
    "Orthorhombic": ("orthorhombic",),
    "Rhombohedral": ("rhombohedral", "trigonal"),
    "Tetragonal": ("tetragonal",),
}

NOBLE_GASES = (2, 10, 18, 36, 54, 86, 118)

RARE_EARTHS = (range(57, 72), range(89, 104))

TRANSITION_METALS = (range(21, 31), range(39, 49), range(72, 81), range(104, 113))


def family(number: int) -> str:
    """Return the part of the periodic table with an atomic number.

    >>> [family(number) for number in (8, 26, 60)]
    ['Main group', 'Transition metals', 'Lanthanides and actinides']
    """
    if any(number in numbers for numbers in RARE_EARTHS):
        return "Lanthanides and actinides"
    if any(number in numbers for numbers in TRANSITION_METALS):
        return "Transition metals"
    return "Main group"


def period_and_group(number: int) -> tuple[int, int | None]:
    """Return the row and the column of the periodic table, 1 to 18, of an atomic number.

    Lanthanides and actinides, lanthanum to ytterbium and actinium to nobelium, have no
    group, as IUPAC numbers the groups.

    >>> [period_and_group(number) for number in (1, 2, 8, 26, 60, 71, 118)]
    [(1, 1), (1, 18), (2, 16), (4, 8), (6, None), (6, 3), (7, 18)]
    """
    period = bisect_left(NOBLE_GASES, number)
    place = number - (NOBLE_GASES[period - 1] if period else 0)
    width = NOBLE_GASES[period] - number
    if place <= 2 - (period == 0):
        return period + 1, place
    return period + 1, 18 - width if width < 16 else None


def block(number: int) -> str:
    """Return the block of the periodic table of an atomic number: s, p, d or f.

    >>> [block(number) for number in (1, 2, 8, 26, 60, 71)]
    ['s', 's', 'p', 'd', 'f', 'd']
    """
    _, group = period_and_group(number)
    if group is None:
        return "f"
    if group <= 2 or number == 2:  # helium is drawn above the p-block
        return "s"
    return "d" if group <= 12 else "p"


def load_facts(*, exponent: float = 0.8) -> list[Fact]:
    """Return facts about the 118 elements, always in the same order.

    A fact's weight falls as the atomic number to the power `exponent`, and averages 1 over
    the facts of each relation: light elements are met more often.
    """
    rows: list[tuple[str, str, int, str, tuple[str, ...]]] = []
    for element in periodictable.elements:
        if element.number == 0:  # the neutron
            continue
        name, symbol, number = element.name, element.symbol, str(element.number)
        period, group = period_and_group(element.number)
        others = ALIASES.get(name, ())
        rows += [
            ("element-symbol", name, element.number, symbol, ()),
            ("symbol-element", symbol, element.number, name, others),
            ("element-number", name, element.number, number, ()),
            ("element-period", name, element.number, str(period), ()),
            ("element-block", name, element.number, f"{block(element.number)}-block", ()),
        ]
        if group:
            rows.append(("element-group", name, element.number, str(group), ()))
        structure = getattr(element, "crystal_structure", None) or {}
        if names := STRUCTURES.get(structure.get("symmetry", "")):
            rows.append(("element-structure", name, element.number, names[0], names[1:]))

    raw: dict[str, list[float]] = defaultdict(list)
    for relation, _, atomic_number, *_ in rows:
        raw[relation].append(atomic_number**-exponent)
    mean = {relation: sum(values) / len(values) for relation, values in raw.items()}
    return [
        Fact(
            question_id=f"{relation}-{atomic_number}",
            relation=relation,
            question=QUESTION_FORMS[relation].format(title),
            answer=answer,
            aliases=tuple(aliases),
            group=family(atomic_number),
            weight=atomic_number**-exponent / mean[relation],
        )
        for relation, title, atomic_number, answer, aliases in rows
    ]
