"""Any sentence-transformers model behind the embedder seam; needs the `sentence-transformers` extra (SPEC 9)."""

from __future__ import annotations

import hashlib
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from code_intel_server.errors import Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

    from code_intel_server.index.vectors.embedding import TextKind

_SHORT_NAMES = {"multilingual-e5-small": "intfloat/multilingual-e5-small"}

_E5 = re.compile(r"(?:^|[-_/])e5-(?!mistral)(?!.*instruct)", re.IGNORECASE)
"""The E5 family wants `query: ` and `passage: ` before every text, and its configuration does not say so."""

_HUB_SECONDS = 5
_BATCH = 16
_MAX_CHARACTERS = 1 << 14
"""Far beyond the 512 tokens such models read; spares the tokenizer a 1 MB line."""


def load_transformer(model: str) -> TransformerEncoder:
    """Load from a local folder, the hub's cache, or the hub, in this order; for errors see `load_encoder`."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise Unavailable("tool_errors.embedding.extra_missing", model=model, reason=str(error)) from error
    place = _SHORT_NAMES.get(model, model)
    try:
        cached = _at_hand(place)
        if not cached:
            _ask_hub(place)
        loaded = SentenceTransformer(place, device="cpu", local_files_only=cached)
        return TransformerEncoder(_identity(place), loaded)
    except (OSError, ValueError, RuntimeError, ImportError, KeyError) as error:
        raise Unavailable("tool_errors.embedding.model_unavailable", model=model, reason=_first_line(error)) from error


def _at_hand(place: str) -> bool:
    """Whether the model is a local folder or already in the hub's cache."""
    from huggingface_hub import try_to_load_from_cache

    return Path(place).exists() or any(
        isinstance(try_to_load_from_cache(place, name), str) for name in ("modules.json", "config.json")
    )


def _ask_hub(place: str) -> None:
    """Raise OSError at once where the hub cannot be reached: the library itself would try again for more than a minute."""
    from huggingface_hub import constants

    address = f"{constants.ENDPOINT}/{place}/resolve/main/config.json"
    request = urllib.request.Request(address, method="HEAD")  # noqa: S310 - the endpoint is the library's own setting
    try:
        urllib.request.urlopen(request, timeout=_HUB_SECONDS).close()  # noqa: S310
    except urllib.error.HTTPError as answer:
        answer.close()  # it does answer; what it says of this model, the library tells better


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _identity(place: str) -> str:
    """The hub name, or for a folder its name and a digest of what it holds: retrained weights are another model."""
    folder = Path(place)
    if not folder.is_dir():
        return place
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"{folder.resolve().name}-{digest.hexdigest()[:12]}"


class TransformerEncoder:
    """Runs a transformer on the CPU, one call at a time (its tokenizer is not safe to share)."""

    def __init__(self, name: str, model: SentenceTransformer) -> None:
        self.name = name
        self._model = model
        self._lock = threading.Lock()
        self._e5 = bool(_E5.search(name))
        self.dim = int(self.encode(["dimension"], "passage").shape[1])

    def encode(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        """See `Encoder.encode`."""
        import numpy as np

        cut = [text[:_MAX_CHARACTERS] for text in texts]
        filled = [i for i, text in enumerate(cut) if text.strip()]
        if not filled:
            return np.zeros((len(cut), self.dim), dtype=np.float32)
        vectors = self._run([cut[i] for i in filled], kind)
        out = np.zeros((len(cut), vectors.shape[1]), dtype=np.float32)
        out[filled] = vectors
        return out

    def _run(self, texts: list[str], kind: TextKind) -> NDArray[np.float32]:
        import numpy as np

        if self._e5:
            run, texts = self._model.encode, [f"{kind}: {text}" for text in texts]
        else:
            run = self._model.encode_query if kind == "query" else self._model.encode_document
        with self._lock:
            found = run(
                texts, batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
            )
        return np.asarray(found, dtype=np.float32)
