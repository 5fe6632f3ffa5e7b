"""Which answers are right: a match with the references, a paid model, a person.

Modules
-------
audit: an audit of the judge: a sheet for a person to fill in, and what it then says
backends: have requests judged, one by one or in batches, within the ceilings of a study
batch: ask a judge in batches: half the price, and an answer within a day
batch_record: what is known of a batch of requests on its way, on disk
batch_results: what a server says of a batch and its results: plain data, no network
cache: replies on disk, each under the digest of its request, shared by all jobs
client: ask an OpenAI-compatible server, whatever it is: patiently, within bounds, in
    confidence
key: a server's key: whether it can be sent, and texts without it
labels: the labels of a judge: by a match against references, or read from a judge's words
ledger: what judging will cost, said before it is spent, and a ceiling on it
one_by_one: ask a judge request by request, several at once
prompt: what is asked of a judge model: plain data, no network
queue: the file in which a person labels what the judge would not or could not
reply: how a judge's reply is read: plain data, no network
rows: CSV files to which jobs append rows: one may be cut short, and people edit them
run: judge candidates by a paid model, nothing twice, and by a person where that fails
settings: what a study decides about a paid judge
"""
