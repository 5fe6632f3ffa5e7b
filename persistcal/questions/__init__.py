"""Questions and their reference answers: the datasets of the paper, of atlas, and users' own.

Modules
-------
cities: real facts about cities and countries, and questions about them
elements: real facts about chemical elements, and questions about them
facts: real facts as questions that are asked, and as texts that a model is pre-trained on
groups: groups of facts that a change is about, and the answers that an edit makes true
own: a user's questions as the table QUESTIONS, and passages before them
paper: the paper's datasets: TriviaQA, Jeopardy and BioASQ as it asks them
question_list: a dataset's canonical question list: unique questions, indices, splits and
    counts
"""
