"""Checkpoints: find and fetch them, load them, run them in batches.

Modules
-------
batches: run a model on many prompts in batches that fit into memory
checkpoint: the record of a checkpoint, its files and digests; refuse incomplete models
graphs: steps of a model as CUDA graphs, and norms as single kernels
hub: checkpoints of a Hub repository or a local folder: find, fetch and check them
load: load models and tokenizers on a device, at a precision, with changes of their weights
packing: encode prompts with a common beginning together; hidden states at their ends
prompts: few-shot prompts, in plain text or as a chat, and requests for a confidence
sizes: GPU memory of decoding, scoring and training, from a model's shape
vllm: a causal language model in vLLM, with this project's beam search
"""
