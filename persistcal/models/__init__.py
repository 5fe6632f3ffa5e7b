"""Checkpoints: find and fetch them, pre-train them, load them, run them in batches.

Modules
-------
alike: refuse states of a model that cannot share an adapter
batches: run a model over many prompts in batches: shards, memory and finished work
checkpoint: a checkpoint's record: where its files are and what is in them
checks: refuse models and adapters that are not whole
corpus: the documents of a small pre-training, in a mixture that drifts
hub: checkpoints of a Hub repository or a local folder: looked up, fetched and checked
load: load causal language models and their tokenizers, and choose device and precision
pretraining: pre-train a small Olmo-3 model in segments, one saved checkpoint after another
revisions: revisions as they were looked up, against each other and those that were used
states: weights that a state changes in memory: an adapter, an average, rounded weights
vllm: a causal language model that vLLM runs, for beam search of our own
"""
