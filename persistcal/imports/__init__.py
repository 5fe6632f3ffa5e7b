"""Predictions from elsewhere: a table of one's own, or the authors' release."""
