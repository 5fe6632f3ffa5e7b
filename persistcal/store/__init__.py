"""Files: tables, jobs, logs, progress, and readers of users' files.

Modules
-------
artifacts: the tables that rules pass to each other, and their names in annotations
code: digests of the code that makes a result
files: read and write files as a whole, and compare their digests
jobs: run the function of a script as a job, with its log and progress
progress: work files of an unfinished output, sealed tensors, and lines about long jobs
provenance: what made each result: the processor or GPU, and the versions of packages
replies: replies of a paid server, its running batches, and the ledger of requests
sheets: sheets that a person fills in
tables: tables in files: a schema each, a digest, and CSV files for people
user_files: read users' CSV, JSONL and parquet files, with errors that show the rows
"""
