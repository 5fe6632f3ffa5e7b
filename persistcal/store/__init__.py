"""Everything that touches files on behalf of the other rooms.

Modules
-------
artifacts: the tables that rules hand to each other, and their names in annotations
figures: figures as files, whole or not at all
entailment_cache: answers of an entailment model on disk, shared by all jobs
files: files by their paths: read, written whole or not at all, and known by a digest
gpu_errors: errors of GPUs, explained in a sentence
jobs: run the function of a script as a job: inputs read, result written whole or not at all
logs: a rule's records and tracebacks in its log, and how long jobs took
pace: progress of a long job, as lines of its log
paid: replies of a paid server, its batches on their way, and the ledger of requests
progress: work files of an output that is not finished, to go on from after a kill
provenance: digests of the code that makes a result
rows: CSV files to which jobs append rows: one may be cut short, and people edit them
sealed: safetensors files that carry a digest of what is in them
sheets: tables as people read and edit them
table: tables in files: one schema each, a digest, and what the rows are about
"""
