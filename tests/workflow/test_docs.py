"""The documentation says what there is."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
SCHEMA = yaml.safe_load((ROOT / "study" / "schema.yaml").read_text())


def resolved(node):
    while "$ref" in node:
        target = SCHEMA
        for part in node["$ref"][2:].split("/"):
            target = target[part]
        node = {**target, **{k: v for k, v in node.items() if k != "$ref"}}
    return node


def keys(node, path=""):
    node = resolved(node)
    for name, child in node.get("properties", {}).items():
        yield f"{path}{name}", resolved(child)
        yield from keys(child, f"{path}{name}.")
    if isinstance(node.get("additionalProperties"), dict):
        yield from keys(node["additionalProperties"], f"{path}*.")
    if "items" in node:
        yield from keys(node["items"], f"{path[:-1]}[].")


def test_every_key_of_the_config_has_a_row_with_its_meaning():
    text = (ROOT / "config" / "README.md").read_text()
    described = list(keys(SCHEMA))
    assert len(described) > 100
    for key, node in described:
        assert f"`{key}`" in text, key
        assert node["description"].strip() in text, key


def test_links_of_the_documentation_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "config" / "README.md"]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page}: {target}"
