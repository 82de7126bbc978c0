"""The embedder seam: text to unit vectors, by the bundled static model or by sentence-transformers (SPEC 9).

A static model is a table with one vector a word piece; the vector of a text is the weighted sum of its rows. That needs
numpy alone, loads in milliseconds and encodes thousands of chunks a second, where a transformer manages a few dozen.
Ranking makes up for most of what it loses (benchmarks/embedder has the figures and how the table was made).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from code_intel_server.errors import Unavailable
from code_intel_server.index.retrieval.words import Vocabulary, packed_bag

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TextKind: TypeAlias = Literal["query", "passage"]

BUNDLED = "bundled"
MODEL_DIR = Path(__file__).parents[1] / "model"

_LOADING = threading.Lock()

_BAGS_AT_ONCE = 8
"""As many as fit into a processor's own memory; with more each step has to fetch its numbers again."""


class Encoder(Protocol):
    """Turns text into vectors whose dot product is their likeness.

    `name` identifies the weights: vectors of encoders with different names must never be compared.
    """

    @property
    def name(self) -> str:
        """What the store remembers to notice a changed model."""

    @property
    def dim(self) -> int:
        """Number of columns of what `encode` returns."""

    def encode(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        """One row of length 1 a text, shape (len(texts), dim); a row of zeros for a text without any known word."""


def load_encoder(model: str = BUNDLED) -> Encoder:
    """The encoder that `config.json` names in `embedding_model`, loaded once a process.

    `bundled`, or a sentence-transformers model by short name, hub name or local folder. Raises
    Unavailable('tool_errors.embedding.extra_missing') without the extra that such a model needs, and
    Unavailable('tool_errors.embedding.model_unavailable') where the model itself cannot be loaded.
    """
    with _LOADING:
        return _load(model.strip() or BUNDLED)


def extra_missing(model: str) -> bool:
    """Whether a model needs the sentence-transformers extra, and that is not installed; loads nothing."""
    return model.strip() not in {"", BUNDLED} and find_spec("sentence_transformers") is None


@lru_cache(maxsize=4)
def _load(model: str) -> Encoder:
    if model == BUNDLED:
        return load_static(MODEL_DIR)
    from code_intel_server.index.vectors.transformer import load_transformer

    return load_transformer(model)


def load_static(folder: Path) -> StaticEncoder:
    """Read a static model: `model.json`, `vocabulary.txt`, `vectors.npy` (int8) and `scales.npy` (float32, query and passage).

    Raises Unavailable('tool_errors.embedding.model_unavailable') where a file is missing or does not fit the others.
    """
    import numpy as np

    try:
        card = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        vocabulary = Vocabulary.read(folder / "vocabulary.txt")
        vectors = np.load(folder / "vectors.npy", allow_pickle=False)
        scales = np.load(folder / "scales.npy", allow_pickle=False)
        if vectors.shape != (len(vocabulary), card["dim"]) or scales.shape != (2, len(vocabulary)):
            raise ValueError(f"{len(vocabulary)} tokens, vectors {vectors.shape}, scales {scales.shape}")
        return StaticEncoder(str(card["name"]), vocabulary, vectors, scales)
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise Unavailable("tool_errors.embedding.model_unavailable", model=BUNDLED, reason=str(error)) from error


class StaticEncoder:
    """Adds up rows of a table. The same text gives the same bits in any batch and thread."""

    def __init__(
        self, name: str, vocabulary: Vocabulary, vectors: NDArray[np.int8], scales: NDArray[np.float32]
    ) -> None:
        self.name = name
        self.dim = int(vectors.shape[1])
        self.vocabulary = vocabulary
        self._vectors = vectors
        self._scales: dict[TextKind, NDArray[np.float32]] = {"query": scales[0], "passage": scales[1]}

    def encode(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        """See `Encoder.encode`."""
        return self.encode_bags([packed_bag(self.vocabulary.bag(text)) for text in texts], kind)

    def encode_bags(self, bags: Sequence[bytes], kind: TextKind = "passage") -> NDArray[np.float32]:
        """`encode` of texts whose bags (`words.packed`) were made elsewhere."""
        import numpy as np

        out = np.zeros((len(bags), self.dim), dtype=np.float32)
        for at in range(0, len(bags), _BAGS_AT_ONCE):
            self._add_up(bags[at : at + _BAGS_AT_ONCE], self._scales[kind], out[at : at + _BAGS_AT_ONCE])
        norms = np.sqrt(np.einsum("ij,ij->i", out, out))[:, None]
        np.divide(out, norms, out=out, where=norms > 0)
        return out

    def _add_up(self, bags: Sequence[bytes], scale: NDArray[np.float32], out: NDArray[np.float32]) -> None:
        """Weighted sum of each bag's rows. Added in order, without BLAS, whose threads would change the last bits."""
        import numpy as np

        halves = [np.frombuffer(bag, dtype=np.uint32).reshape(2, -1) for bag in bags]
        rows = np.concatenate([half[0] for half in halves])
        counts = np.concatenate([half[1] for half in halves]).astype(np.float32)
        weights = scale[rows] * np.sqrt(counts)  # a word said a hundred times is not a hundred times the subject
        weighted = self._vectors.take(rows, axis=0).astype(np.float32)
        weighted *= weights[:, None]
        at = 0
        for row, half in zip(out, halves, strict=True):
            end = at + half.shape[1]
            if end > at:
                np.add.reduce(weighted[at:end], axis=0, out=row)
            at = end
