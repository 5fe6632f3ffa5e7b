"""The paper itself: its release, its further analyses, its printed numbers, and research on it.

Rules of these are in `rules/`, and their scripts in `scripts/`. A study of other models needs
none of them, and nothing outside this folder imports it but rules and tests.

Modules
-------
catalogue: settings, figures and tables of the analyses; the Snakefile imports it
compare_judges: show how judges differ
figures: figures of the analyses
paper: the paper's printed numbers under this project's names, compared with a study
paper_numbers: the paper's other printed numbers, such as sizes and accuracies, compared
processors: atlas as several processors run it, and its other pre-trainings
real_lab: the inputs of the study of real weights, and the weights of SmolLM2-135M-Instruct
real_updates: measure published updates on stated confidences
release_files: the files of the authors' release: archive, pickles and arrays
release_tables: the release as artifacts of a study
released: settings by which a study differs from the paper, and parts of the release
tables: tables of the analyses
transfer: adapters at other checkpoints, variance of hidden states, and the oracle's gain
weights: cosine similarity of checkpoints' weights, read piece by piece
"""
