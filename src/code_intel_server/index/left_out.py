"""Spares the ChromaDB child what ChromaDB imports and never uses here: a tenth of its start and 12 MB.

The exporter of traces brings gRPC with it, though telemetry is off (measured on 1.5.9, the version we pin).
"""

import sys
from types import ModuleType

_EXPORTER = "opentelemetry.exporter.otlp.proto.grpc.trace_exporter"


def leave_out() -> None:
    """Put an empty module in the exporter's place, before anybody imports it; only for a process of ChromaDB's own."""
    empty = ModuleType(_EXPORTER)
    empty.OTLPSpanExporter = type("OTLPSpanExporter", (), {})  # type: ignore[attr-defined]
    sys.modules.setdefault(_EXPORTER, empty)
