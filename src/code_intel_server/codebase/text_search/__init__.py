"""`search_text`: lines that match, the most relevant first."""

from code_intel_server.codebase.text_search.search import SearchOptions, TextRow, search_text

__all__ = ["SearchOptions", "TextRow", "search_text"]
