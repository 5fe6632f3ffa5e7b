"""Which answers are right: a match with the references, a paid model, a person.

Modules
-------
ask: have requests judged, one by one or in batches, within the ceilings of a study
audit: an audit of the judge: a sheet for a person to fill in, and its summary
batch: a judge's batch: half the price, and an answer within a day
contradictions: questions on which a judge contradicts itself: equal answers, one correct and
    one not
correction: what a study would have measured had a person judged
labels: the labels of a judge: by a match against references, or read from a judge's reply
prompt: requests to a judge model, as a study wants them: plain data, no network
queue: the file in which a person labels what the judge would not or could not
reply: replies of a judge: labels read from what a server sent, kept and looked up
run: judge candidates by a paid model, nothing twice, and by a person where that fails
"""
