"""The paper itself: its release, its further analyses, its printed numbers, and research on it.

Rules of these are in `rules/`, and their scripts in `scripts/`. A study of other models needs
none of them, and nothing outside this folder imports it but rules and tests.
"""
