"""The content of the user's files at one moment, and how it differs from another. `tree` takes and compares; `status` asks git alone."""
