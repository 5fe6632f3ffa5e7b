"""Whether confidence follows knowledge as the knowledge changes.

Modules
-------
analyses/: further analyses of the paper: transfer, hidden states, weights, headroom,
    accuracy
api/: what a notebook needs: tables of predictions, or models, in; tables out
answers/: what a checkpoint answers: beam search, which answers mean the same, the
    prediction
confidence/: how sure an answer is: verbalised confidence, verifiers, probes, calibration
evaluation/: contrast sets, conditioning, metrics and paired bootstrap tests
imports/: predictions from elsewhere: a table of one's own, or the authors' release
judge/: which answers are right: a match with the references, a paid model, a person
models/: checkpoints: find and fetch them, pre-train them, load them, run them in batches
questions/: questions and their reference answers: the datasets of the paper, of atlas, and
    one's own
report/: tables and figures, and the study beside the paper
store/: everything that touches files on behalf of the other rooms
training/: train confidence adapters on several checkpoints jointly
"""
