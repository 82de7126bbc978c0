"""What the project says for itself: configuration, rules, documents, prompts, and what of it the user trusts.
Each module is a door of its own; `config` and `trust` are asked most.
"""
