"""A question asked of the index: words and vectors, fused and ranked."""
