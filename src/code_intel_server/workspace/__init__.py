"""The `.code-intel` folder and git: what is kept, what changed, and the branches of a session."""
