"""Questions with their reference answers: public datasets and users' own.

Modules
-------
labels: labels of answers, by a match with references or from a judge's reply
own: a user's questions as the table QUESTIONS
question_list: the list of a dataset's questions, with splits, contexts and groups
sources: the public question sets: TriviaQA, Jeopardy and BioASQ
templates: check the fields of prompt templates, such as {question}
"""
