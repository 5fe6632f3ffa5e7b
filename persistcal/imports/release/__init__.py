"""The authors' released results, read so that nothing in them can run.

Modules
-------
candidates: read the candidate answers and judge labels of the authors' released results
confidences: read estimators' confidences from the authors' released results
estimators: find and read every estimator's confidences in the authors' released results
files: names and shards of the authors' released results
predictions: turn the authors' released results into questions, scores and predictions
safe_archive: check and unpack an archive that somebody else made
safe_load: load pickled lists and torch tensors so that nothing else can be loaded
"""
