"""Ask OpenAI-compatible servers: retries, limits, redacted keys, and a ceiling on the cost.

Modules
-------
client: send requests with retries, with limits on a reply, and without the key in messages
spending: the cost of requests, a ceiling on it, concurrent requests, and their errors
"""
