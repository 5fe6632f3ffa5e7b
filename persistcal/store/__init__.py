"""Everything that touches files on behalf of the other rooms.

Modules
-------
jobs: run the function of a script as a job: inputs read, result written whole or not at all
"""
