"""The HTML page with the results of a study and all answers."""
