"""Reading the user's code: where names are defined and used, how files are built, what a change reaches."""
