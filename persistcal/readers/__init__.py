"""Users' files and frames as tables of an evaluation: predictions, answers, options."""
