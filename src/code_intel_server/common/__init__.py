"""What every room needs and none owns: text made safe, globs, children and their pipes, the end of the server."""
