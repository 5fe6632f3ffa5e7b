"""One page that shows a study: what it says, and every answer behind it."""
