"""code-intel: an MCP server that takes coding agents through a verified workflow."""

__version__ = "2.0.0"
