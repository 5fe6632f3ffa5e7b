"""Which answers are right: a match with the references, a judge model, a person."""
