"""Source text by syntax tree: outlines, uses, imports, calls and places to cut, and the one door to the grammars."""
