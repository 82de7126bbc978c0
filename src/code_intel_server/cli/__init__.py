"""People's commands, each loaded when it is first asked for."""
