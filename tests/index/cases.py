"""An index that can be opened again and again over the same project."""

from pathlib import Path

from code_intel_server.index.code_index import CodeIndex
from code_intel_server.index.values import ChromaSettings, IndexSettings
from tests.index.builders import HashEncoder, make_index


class Case:
    """A project, how to open its index, and the index."""

    def __init__(self, root: Path, chroma: ChromaSettings) -> None:
        self.root = root
        self.chroma = chroma
        self.encoder = HashEncoder()
        self.index = self.open()

    def open(self) -> CodeIndex:
        """A new index over the same project."""
        self.index = make_index(self.root, IndexSettings(chroma=self.chroma), self.encoder)
        return self.index
