"""What the project says for itself: configuration, rules, documents, prompts, and what of it the user trusts."""
