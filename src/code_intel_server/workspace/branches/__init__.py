"""The git effects of a session: its branch, its commits, the merge, and what is shelved before anything is lost."""
