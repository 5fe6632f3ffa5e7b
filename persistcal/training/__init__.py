"""Train confidence adapters on several checkpoints jointly; change checkpoints.

Modules
-------
changes: changes of a checkpoint in the laboratory: documents to learn, and training
data: training data of an adapter: order of questions, weights, labels, learning rates
launch: start the ranks of a computation, log their output, and end them together
methods: methods of the laboratory, one class each with its keys and its loss
ranks: one computation in several processes that sum their gradients
train: train one adapter on several checkpoints of a model jointly: shared LoRA, gradients
"""
