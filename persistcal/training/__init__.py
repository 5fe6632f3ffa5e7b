"""Train confidence adapters on several checkpoints jointly; change checkpoints."""
