"""Which answers are right: a match with the references, a judge model, a person.

Modules
-------
accuracy: accuracy of each checkpoint, and how often two agree or give the same answer
asking: ask a judge behind a server: request by request, or in batches
audit: a sheet for a person who checks the judge, and its summary
backends: judge back ends, one class each
correction: results corrected for the judge's errors, from an audit
human_labels: the file of answers that a person labels
messages: requests to a judge model and its replies
run: judge candidates, each once, and queue failures for a person
"""
