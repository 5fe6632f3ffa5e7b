"""Whether confidence follows knowledge as the knowledge changes.

Modules
-------
analyses/: further analyses of the paper: transfer, hidden states, weights, headroom,
    accuracy
api/: what a notebook needs: tables of predictions, or models, in; tables out
answers/: what a checkpoint answers: beam search, which answers mean the same, the
    prediction
artifacts: the tables that rules hand to each other: one pyarrow schema each
confidence/: how sure an answer is: verbalised confidence, verifiers, probes, calibration
csv_text: what a text file of somebody's own is written in, where the file itself makes it
    certain
evaluation/: contrast sets, conditioning, metrics and paired bootstrap tests
files: files that are there whole or not at all, and what is in them
gpu_errors: what the errors of GPUs mean, in a sentence
imports/: predictions from elsewhere: a table of one's own, or the authors' release
judge/: which answers are right: a match with the references, a paid model, a person
logs: send a rule's records and tracebacks to its log file
models/: checkpoints: find and fetch them, pre-train them, load them, run them in batches
pace: how far a long job is: lines of its log, with rate and time left
provenance: tie a result to the code that made it
questions/: questions and their reference answers: the datasets of the paper, of atlas, and
    one's own
report/: tables and figures, and the study beside the paper
store/: everything that touches files on behalf of the other rooms
training/: train confidence adapters on several checkpoints jointly
"""
