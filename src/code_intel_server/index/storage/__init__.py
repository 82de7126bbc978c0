"""The index's own database: what is kept of each file and piece, whose it is, and what is done where it is damaged.
`open_index` opens it, `store` is asked.
"""
