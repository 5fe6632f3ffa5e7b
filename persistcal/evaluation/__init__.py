"""Contrast sets, conditioning, metrics and paired bootstrap tests."""
