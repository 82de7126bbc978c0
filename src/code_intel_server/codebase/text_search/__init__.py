"""`search_text`: lines that match, the most relevant first."""
