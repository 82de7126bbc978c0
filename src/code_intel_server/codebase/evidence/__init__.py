"""What of a change counts as work: a difference of syntax, base against now (SPEC 4)."""
