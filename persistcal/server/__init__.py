"""Ask OpenAI-compatible servers: retries, limits, redacted keys, and a ceiling on the cost."""
