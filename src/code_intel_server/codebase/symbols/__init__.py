"""Where names are defined: the symbol cache, what fills it (Universal Ctags, grammars), and the lookups that ask it."""
