"""What a change touches: what is bound to the changed symbols, what changed together with them in history, what text speaks of them.

Ask `analyze_impact`; it answers an `Impact`, whose rows are files with their places, the likeliest to change first.
"""

from code_intel_server.codebase.impact.analyzer import FIRST_IMPACTS, History, analyze_impact
from code_intel_server.codebase.impact.values import AffectedLine, Impact, ImpactRow, Tie

__all__ = ["FIRST_IMPACTS", "AffectedLine", "History", "Impact", "ImpactRow", "Tie", "analyze_impact"]
