"""Which answers are right: a match with the references, a judge model, a person.

Modules
-------
asking: ask a judge behind a server: request by request, or in batches
audit: a sheet for a person who checks the judge, and its summary
backends: judge back ends, one class each
contradictions: questions with equal answers and different labels of the judge
correction: results corrected for the judge's errors, from an audit
human_labels: the file of answers that a person labels
prompt: prompts of a judge model
reply: read the replies of a judge, and keep them on disk
run: judge candidates, each once, and queue failures for a person
"""
