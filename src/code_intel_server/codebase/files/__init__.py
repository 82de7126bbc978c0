"""The project's files as the lookups see them: which there are, what they are written in, and the one door to ripgrep."""
