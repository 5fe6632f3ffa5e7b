"""Train confidence adapters on several checkpoints jointly.

Modules
-------
data: what an adapter learns from: candidate answers with weights and labels
launch: start the ranks of a computation, log what they print, and end them together
lora: one LoRA adapter in several models at once: the same parameters, not copies
loss: the gradient of one training step, over checkpoints, micro-batches and ranks
ranks: one computation in several processes: ranks that sum their gradients
schedule: what a seed draws for a training, the order of its questions, and its learning rates
train: train one confidence adapter on several checkpoints of a model jointly
"""
