"""The authors' released results, read so that nothing in them can run."""
