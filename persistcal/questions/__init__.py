"""Questions with their reference answers: public datasets and users' own.

Modules
-------
labels: labels of answers, by a match with references or from a judge's reply
own: a user's questions as the table QUESTIONS
question_list: the list of a dataset's questions, with splits, contexts and groups
sources: sources of questions: TriviaQA, Jeopardy, BioASQ and a user's file
"""
