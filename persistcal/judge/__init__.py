"""Which answers are right: a match with the references, a paid model, a person."""
