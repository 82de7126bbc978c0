"""Where names are defined: the symbol cache, what fills it (Universal Ctags, grammars), and the lookups that ask it.
`definitions` and `file_structure` answer; `cache` is what they ask.
"""
