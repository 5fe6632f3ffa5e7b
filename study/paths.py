"""Path patterns of the files that several rules name."""

# Files of a checkpoint made by the workflow, besides its weights
MODEL_FILES = "config.json generation_config.json tokenizer.json tokenizer_config.json".split()


class Paths:
    """Patterns of files below the folder of results, with their wildcards in braces."""

    def __init__(self, results: str) -> None:
        self.results = results
        self.logs = f"{results}/logs"
        self.questions = f"{results}/questions/{{dataset}}.parquet"
        self.facts = f"{results}/facts/{{dataset}}.parquet"
        self.given_labels = f"{results}/given_labels/{{dataset}}.parquet"
        self.checkpoint = f"{results}/checkpoints/{{model}}/{{checkpoint}}.json"
        self.entailment_model = f"{results}/entailment/model.json"

        pretrained = f"{results}/pretrained/{{model}}/{{checkpoint}}"
        self.weights = f"{pretrained}/model.safetensors"
        further = [*MODEL_FILES, "optimizer.safetensors"]
        self.beside_weights = [f"{pretrained}/{name}" for name in further]
        changed = f"{results}/changed/{{model}}/{{checkpoint}}"
        self.changed = f"{changed}/model.safetensors"
        self.beside_changed = [f"{changed}/{name}" for name in MODEL_FILES]

        answered = "{model}/{checkpoint}/{dataset}"
        self.contexts = f"{results}/contexts/{answered}.parquet"
        # A file per split, so that a target makes only the splits that it reads
        self.answered = f"{answered}/{{split}}"
        self.beams = f"{results}/beams/{self.answered}.parquet"
        self.clusters = f"{results}/clusters/{self.answered}.parquet"
        self.labels = f"{results}/labels/{self.answered}.parquet"
        self.answers = f"{results}/answers/{self.answered}.parquet"
        self.replies = f"{results}/replies/{self.answered}/{{estimator}}.parquet"
        self.scores = f"{results}/scores/{answered}/{{recipe}}/{{answers}}.parquet"
        self.consulted = f"{results}/judge/consulted/{self.answered}.csv"

        trained = "{model}/{dataset}/{recipe}/{trained_on}/seed{seed}"
        self.adapter = f"{results}/adapters/{trained}"
        self.verified = f"{results}/verified/{{verifier}}/{{model}}/{{dataset}}.parquet"
        self.verifier_adapter = f"{results}/verifiers/{{verifier}}/adapter.json"

        evaluated = "{model}/{dataset}/{estimator}.parquet"
        self.confidences = f"{results}/confidences/{evaluated}"
        self.predictions = f"{results}/predictions/{evaluated}"
        self.unsaid = f"{results}/unsaid/{evaluated}"
        self.metrics = f"{results}/metrics/{evaluated}"
        self.replicates = f"{results}/replicates/{evaluated}"
        self.intervals = f"{results}/intervals/{evaluated}"
        self.contrast_members = f"{results}/contrast_members/{{model}}/{{dataset}}.parquet"
        self.contrast_sets = f"{results}/contrast_sets/{{model}}/{{dataset}}.parquet"
