"""Forest and Map: the chunks of the code and what sessions agreed on, found by words and by meaning. `code_index` is the door."""
