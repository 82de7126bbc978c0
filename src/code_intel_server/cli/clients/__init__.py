"""The clients that code-intel can be set up for, as data."""
