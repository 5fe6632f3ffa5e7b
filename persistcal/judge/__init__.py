"""Which answers are right: a match with the references, a judge model, a person.

Modules
-------
audit: a sheet for a person who checks the judge, and its summary
backends: judge back ends, one class each
batch: batches at a judge: half the price, answers within a day
contradictions: questions with equal answers and different labels of the judge
correction: results corrected for the judge's errors, from an audit
human_labels: the file of answers that a person labels
one_by_one: ask a judge request by request
prompt: prompts of a judge model
reply: read the replies of a judge, and keep them on disk
run: judge candidates, each once, and queue failures for a person
"""
