"""Questions and their reference answers: the datasets of the paper, of atlas, and users' own.

Modules
-------
at_checkpoint: questions at a checkpoint: as it is asked them, and what is right there
bioasq: BioASQ as the paper asks it: factoid and list questions of the task-B training data
cities: real facts about cities and countries, and questions about them
contexts: questions with a passage before them: what a state is asked that has a context
elements: real facts about chemical elements, and questions about them
facts: real facts as questions that are asked, and as texts that a model is pre-trained on
groups: groups of facts that a change is about, and the answers that an edit makes true
jeopardy: Jeopardy as the paper asks it: clues of factual categories that occur often
own: a user's questions as the table QUESTIONS
question_list: a dataset's canonical question list: unique questions, indices, splits and
    counts
templates: check the fields of prompts, such as {question}, before anybody is asked
triviaqa: TriviaQA as the paper asks it: `rc.nocontext`, shuffled, without repetitions
"""
