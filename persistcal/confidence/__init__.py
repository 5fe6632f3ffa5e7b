"""Confidence in an answer: verbalised, by a verifier, by probes; calibration."""
