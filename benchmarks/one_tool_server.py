"""The smallest server there can be on the same SDK: one tool that does nothing. What server_costs.py compares with."""

from typing import Any

from mcp.server import MCPServer

mcp = MCPServer("one-tool", log_level="WARNING")


@mcp.tool()
def do_nothing(data: str = "") -> dict[str, Any]:
    """Answer at once."""
    return {"success": bool(data)}


if __name__ == "__main__":
    mcp.run("stdio")
