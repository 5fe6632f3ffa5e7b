"""Results of the authors' release.

Modules
-------
release_files: read the authors' archives without running their content
release_tables: the authors' records as this project's tables
"""
