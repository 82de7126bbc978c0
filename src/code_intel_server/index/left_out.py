"""Spares a child that talks to a ChromaDB server what ChromaDB imports and never uses here: a quarter of its start and 15 MB.

One on a folder of ours needs nothing of the package at all (`chroma_folder`), unless the engine raises an error of it.

Measured on 1.5.9, the version we pin: the exporter of traces brings gRPC with it, though telemetry is off; the HTTP
library brings its command line; and `overrides` compares every method with the one it overrides, which is for those
who write ChromaDB.
"""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_EXPORTER = "opentelemetry.exporter.otlp.proto.grpc.trace_exporter"
_COMMAND_LINE = "httpx._main"
_OVERRIDES = "overrides"


def leave_out() -> None:
    """Put something empty in their places, before anybody imports them; only for a process of ChromaDB's own."""
    exporter = ModuleType(_EXPORTER)
    exporter.OTLPSpanExporter = type("OTLPSpanExporter", (), {})  # type: ignore[attr-defined]
    sys.modules.setdefault(_EXPORTER, exporter)
    sys.modules.setdefault(_COMMAND_LINE, None)  # type: ignore[arg-type] # is then not found, and httpx does without
    overrides = ModuleType(_OVERRIDES)
    overrides.override = overrides.overrides = _as_it_is  # type: ignore[attr-defined]
    overrides.EnforceOverrides = type("EnforceOverrides", (), {})  # type: ignore[attr-defined]
    sys.modules.setdefault(_OVERRIDES, overrides)


def _as_it_is(method: Callable[..., Any]) -> Callable[..., Any]:
    return method
