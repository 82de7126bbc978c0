"""What a submit is held against: claims, ranges, permissions, and the tree's own word (SPEC 4)."""
