"""The one git door: the repository, its children, and what they print, read.
Ask `repository`, or `isolated_directory` where looking must run nothing; `worktrees` knows what other working trees hold.
"""
