"""Further analyses of the paper: transfer, hidden states, weights, headroom, accuracy."""
