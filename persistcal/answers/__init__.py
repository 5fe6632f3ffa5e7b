"""What a checkpoint answers: beam search, which answers mean the same, the prediction."""
