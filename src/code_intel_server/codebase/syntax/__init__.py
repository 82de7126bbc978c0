"""Source text by syntax tree: outlines, uses, imports, calls and places to cut, and the one door to the grammars.
Ask `structure`, and import it on first use: it loads the grammars. The query files are in `codebase/queries`.
"""
