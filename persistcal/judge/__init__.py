"""Which answers are right: a match with the references, a judge model, a person.

Modules
-------
audit: a sheet on which a person checks the judge, and its summary
backends: judge back ends, one class each
batch: batches at a judge: half the price, answers within a day
contradictions: questions for which the judge contradicts itself on equal answers
correction: results corrected for the judge's errors, from an audit
human_labels: the file in which a person labels what the judge could not
one_by_one: ask a judge request by request
prompt: prompts of a judge model
reply: read the replies of a judge, and keep them on disk
run: judge candidates, each once, and queue failures for a person
"""
