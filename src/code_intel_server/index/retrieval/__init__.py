"""A question asked of the index: words and vectors, fused and ranked. `search` answers; `starting_points` does for a whole report."""
