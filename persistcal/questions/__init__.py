"""Questions with their reference answers: public datasets and users' own.

Modules
-------
catalogue: facts about each source of questions, which the Snakefile imports
labels: labels of answers, by a match with references or from a judge's reply
question_list: the list of a dataset: splits, contexts, groups
sources: sources of questions: TriviaQA, Jeopardy, BioASQ and a user's file
splits: splits of answers, with further asks of the test questions
templates: the fields of prompts, such as {question}
"""
