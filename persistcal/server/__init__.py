"""Ask OpenAI-compatible servers: retries, limits, redacted keys, and a ceiling on the cost.

Modules
-------
client: a server that is asked with retries and limits on the size and time of a reply
errors: failures of a server, keys that cannot be sent, and texts without the key
spending: requests, an estimate of their cost, a ceiling on it, and several asked at once
"""
