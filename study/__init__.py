"""Meaning, checks, costs and display of a study's config."""
