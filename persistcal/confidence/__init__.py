"""How sure an answer is: verbalised confidence, verifiers, probes, calibration."""
