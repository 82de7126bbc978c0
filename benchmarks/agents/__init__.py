"""Real agents on real commits, with the server and without: what the work is worth and what it costs."""
