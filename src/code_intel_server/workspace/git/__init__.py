"""The one git door: the repository, its children, and what they print, read."""
