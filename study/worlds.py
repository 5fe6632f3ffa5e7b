"""Models that are pre-trained several times, each time with another seed: its worlds."""

from typing import Any


def expand_worlds(config: dict[str, Any]) -> None:
    """Put one model per seed in the place of each model whose pre-training lists several.

    A model `m` of the seeds 17 and 18 becomes the models `m-17` and `m-18`, wherever the
    study, its tables and analyses name it; `world_of` says what each is a world of.
    `config` is one that `check_config` has passed.
    """
    worlds: dict[str, list[str]] = {}
    for name, model in list(config["models"].items()):
        seeds = model.get("pretraining", {}).get("seed")
        if not isinstance(seeds, list):
            continue
        worlds[name] = [f"{name}-{seed}" for seed in seeds]
        del config["models"][name]
        for seed, world in zip(seeds, worlds[name], strict=True):
            config["models"][world] = {
                **model,
                "label": f"{model.get('label', name)}, seed {seed}",
                "world_label": model.get("label", name),
                "pretraining": {**model["pretraining"], "seed": seed},
                "world_of": name,
            }
    for section in (
        config["study"],
        *config["tables"].values(),
        *config["analyses"].values(),
    ):
        if "models" in section:
            section["models"] = [
                world for name in section["models"] for world in worlds.get(name, [name])
            ]
