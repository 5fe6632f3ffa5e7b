"""Questions and their reference answers: the datasets of the paper, of atlas, and one's own."""
