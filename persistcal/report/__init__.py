"""Tables and figures, and the study beside the paper."""
