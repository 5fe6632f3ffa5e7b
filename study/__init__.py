"""Meaning, checks and costs of a study's config."""
