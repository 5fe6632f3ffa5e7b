"""Train confidence adapters on several checkpoints jointly."""
