"""The project's files as the lookups see them: which there are, what they are written in, and the one door to ripgrep.
`project` names paths, `languages` and `roles` say what a file is, `text` reads it.
"""
