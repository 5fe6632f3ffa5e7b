"""The authors' released results, read so that nothing in them can run.

Modules
-------
estimators: find and read every estimator's confidences in the authors' released results
files: names, shards and tensors of the authors' released results
safe_archive: check and unpack an archive of others: only files and folders, only below one
    folder
safe_load: load pickled lists and torch tensors so that nothing else can be loaded
shards: read the candidates, judge labels and estimators' confidences that the release holds
tables: turn the authors' released results into the tables of a study, one after the other
"""
