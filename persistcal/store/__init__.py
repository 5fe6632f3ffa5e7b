"""Files: tables, jobs, logs, progress, and readers of users' files."""
