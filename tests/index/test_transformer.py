"""Models of the sentence-transformers extra behind the same seam: prefixes, identity, clear errors (SPEC 9)."""

import importlib.util
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from code_intel_server.errors import Unavailable
from code_intel_server.index.vectors import transformer
from code_intel_server.index.vectors.embedding import load_encoder
from code_intel_server.index.vectors.transformer import TransformerEncoder, _identity

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

HAS_EXTRA = importlib.util.find_spec("sentence_transformers") is not None
with_extra = pytest.mark.skipif(not HAS_EXTRA, reason="needs the sentence-transformers extra")


class Recorder:
    """Stands in for a model of half a gigabyte: remembers what it was asked, answers with one unit vector a text."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    def encode(self, texts: Sequence[str], **_: object) -> np.ndarray:
        return self._answer("encode", texts)

    def encode_query(self, texts: Sequence[str], **_: object) -> np.ndarray:
        return self._answer("encode_query", texts)

    def encode_document(self, texts: Sequence[str], **_: object) -> np.ndarray:
        return self._answer("encode_document", texts)

    def _answer(self, how: str, texts: Sequence[str]) -> np.ndarray:
        self.asked.append((how, list(texts)))
        return np.full((len(texts), 4), 0.5, dtype=np.float32)


def encoder(name: str) -> tuple[TransformerEncoder, Recorder]:
    """An encoder over a recorder, its opening question forgotten."""
    model = Recorder()
    found = TransformerEncoder(name, cast("SentenceTransformer", model))
    model.asked.clear()
    return found, model


@pytest.mark.parametrize(
    "name", ["intfloat/multilingual-e5-small", "multilingual-e5-small-0123456789ab", "intfloat/e5-base-v2"]
)
def test_the_e5_family_gets_its_prefixes(name: str) -> None:
    found, model = encoder(name)
    found.encode(["where are cookies parsed"], "query")
    found.encode(["def parse(): ..."], "passage")
    assert model.asked == [("encode", ["query: where are cookies parsed"]), ("encode", ["passage: def parse(): ..."])]


@pytest.mark.parametrize(
    "name", ["BAAI/bge-m3", "sentence-transformers/all-MiniLM-L6-v2", "intfloat/multilingual-e5-large-instruct"]
)
def test_any_other_model_is_asked_in_the_way_its_own_configuration_says(name: str) -> None:
    found, model = encoder(name)
    found.encode(["question"], "query")
    found.encode(["code"], "passage")
    assert model.asked == [("encode_query", ["question"]), ("encode_document", ["code"])]


def test_empty_texts_are_zero_rows_and_never_reach_the_model() -> None:
    found, model = encoder("some/model")
    vectors = found.encode(["", "code", " \n"], "passage")
    assert vectors.any(axis=1).tolist() == [False, True, False]
    assert model.asked == [("encode_document", ["code"])]
    assert found.encode([], "query").shape == (0, found.dim)


def test_a_huge_text_is_cut_before_the_model_sees_it() -> None:
    found, model = encoder("some/model")
    found.encode(["x" * 1_000_000], "passage")
    assert len(model.asked[0][1][0]) < 20_000


def test_a_folder_with_other_weights_is_another_model(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(b"one")
    first = _identity(str(folder))
    (folder / "weights.bin").write_bytes(b"two")
    assert first.startswith("mine-")
    assert _identity(str(folder)) != first
    assert _identity("owner/model") == "owner/model"


@pytest.mark.skipif(HAS_EXTRA, reason="the extra is installed")
def test_without_the_extra_the_error_says_so() -> None:
    with pytest.raises(Unavailable) as caught:
        load_encoder("multilingual-e5-small")
    assert caught.value.key == "tool_errors.embedding.extra_missing"
    assert caught.value.params["model"] == "multilingual-e5-small"
    assert "torch" not in sys.modules


@with_extra
@pytest.mark.filterwarnings("default")
def test_a_folder_without_a_model_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        load_encoder(str(tmp_path))
    assert caught.value.key == "tool_errors.embedding.model_unavailable"


@with_extra
@pytest.mark.filterwarnings("default")
def test_a_hub_that_cannot_be_reached_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{closed}")
    begin = time.perf_counter()
    with pytest.raises(Unavailable) as caught:
        transformer.load_transformer("nobody/has-this-model")
    assert caught.value.key == "tool_errors.embedding.model_unavailable"
    assert time.perf_counter() - begin < 30  # the library's own retries take over a minute


@with_extra
@pytest.mark.filterwarnings("default")
def test_a_model_in_a_local_folder_gives_unit_rows(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path)
    found = load_encoder(str(folder))
    vectors = found.encode(["read a file", "", "write"], "passage")
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1], atol=1e-5)
    assert found.dim == vectors.shape[1]


def tiny_model(folder: Path) -> Path:
    """A sentence-transformers model of a few kilobytes with random weights."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "read", "write", "a", "file"]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    BertModel(config).save_pretrained(folder / "bert")
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    body = Transformer(str(folder / "bert"))
    SentenceTransformer(modules=[body, Pooling(16)]).save(str(folder / "model"))
    return folder / "model"
