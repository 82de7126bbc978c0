"""What a submit is compared with: claims, ranges, permissions, and the tree's own word (SPEC 4)."""
