"""Where names are used, and which symbol each of those names means. `finder` and `go_to_definition` answer."""
