"""Where names are used, and which symbol each of those names means."""
