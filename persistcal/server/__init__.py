"""Ask OpenAI-compatible servers: retries, limits, redacted keys, and a ceiling on the cost.

Modules
-------
client: send requests with retries and with limits on the size and time of a reply
errors: failures of a server, invalid keys, and texts without the key
spending: the cost of requests, a ceiling on it, and concurrent requests
"""
