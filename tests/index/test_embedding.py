"""The embedder seam: the bundled model is fast to load, repeatable, bounded, and needs nothing but numpy (SPEC 9)."""

import hashlib
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hatchling.builders.wheel import WheelBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from code_intel_server.errors import Unavailable
from code_intel_server.index.retrieval.words import MAX_CHARACTERS, MAX_WORD, Vocabulary, split_words
from code_intel_server.index.vectors import embedding
from code_intel_server.index.vectors.embedding import MODEL_DIR, Encoder, load_encoder, load_static

CODE = """def parse_cookie_header(header: str) -> dict[str, str]:
    jar = {}
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        jar[name] = value
    return jar
"""


def likeness(encoder: Encoder, query: str, passages: Sequence[str]) -> list[float]:
    """Cosine of the query to each passage."""
    scores = encoder.encode(passages, "passage") @ encoder.encode([query], "query")[0]
    return [float(score) for score in scores]


def copied_model(folder: Path) -> Path:
    """A copy of the bundled model that a test may damage."""
    return Path(shutil.copytree(MODEL_DIR, folder / "model"))


# --- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parseCookieHeader", ["parse", "Cookie", "Header"]),
        ("HTTPServer.readLine2", ["HTTP", "Server", "read", "Line", "2"]),
        ("MAX_RETRY_COUNT", ["MAX", "RETRY", "COUNT"]),
        ("__init__(self, x1)", ["init", "self", "x", "1"]),
        ("kebab-case/path.py", ["kebab", "case", "path", "py"]),
        ("café naïve", ["cafe", "naive"]),
        ("проверка", ["проверка"]),
        ("", []),
        ("+ - ;\n\t", []),
    ],
)
def test_identifiers_fall_apart_into_their_words(text: str, words: list[str]) -> None:
    assert split_words(text) == words


def test_a_word_the_vocabulary_lacks_is_cut_into_its_longest_pieces() -> None:
    vocabulary = Vocabulary(["token", "##ize", "##iz", "##r", "t"])
    assert vocabulary.rows("tokenizer") == (0, 1, 3)
    assert vocabulary.rows("TOKEN") == (0,)


def test_characters_the_vocabulary_lacks_are_skipped() -> None:
    assert Vocabulary(["a", "##b"]).rows("axb") == (0, 1)
    assert Vocabulary(["a"]).rows("ß") == ()


def test_a_bag_counts_how_often_a_row_occurs_whatever_the_case() -> None:
    assert Vocabulary(["read", "line"]).bag("readLine READ_line read") == {0: 3, 1: 2}


@given(st.text(max_size=300))
def test_splitting_any_text_gives_words_without_separators(text: str) -> None:
    assert all(word and "_" not in word and not word.isspace() for word in split_words(text))


# --- the bundled model -----------------------------------------------------------------------------------------------


def test_rows_are_unit_float32_vectors_of_the_named_dimension() -> None:
    encoder = load_encoder()
    vectors = encoder.encode([CODE, "read a file", "x"], "passage")
    assert vectors.dtype == np.float32
    assert vectors.shape == (3, encoder.dim)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("text", ["", " \n\t", "+++ ;;; ---", "\x00", "\u200b\u202e"])
def test_a_text_without_words_is_a_row_of_zeros_and_leaves_its_neighbours_alone(text: str) -> None:
    encoder = load_encoder()
    vectors = encoder.encode([CODE, text, CODE], "passage")
    assert not vectors[1].any()
    assert np.array_equal(vectors[0], vectors[2])
    assert vectors[0].any()


def test_no_texts_give_an_empty_matrix_of_the_right_width() -> None:
    encoder = load_encoder()
    assert encoder.encode([], "query").shape == (0, encoder.dim)


@pytest.mark.parametrize(
    ("query", "right", "wrong"),
    [
        ("where are cookies parsed", CODE, "def draw_circle(canvas, radius):\n    canvas.arc(0, 0, radius)\n"),
        (
            "retry a failed request with a delay",
            "fn backoff(attempt: u32) -> Duration { sleep(attempt * delay) }",
            "class Matrix { transpose() {} }",
        ),
        (
            "delete a user account",
            "public void removeUser(Account account) {}",
            "public void renderHtml(Template t) {}",
        ),
        (
            "hash the password with a salt",
            "function hashSecret(plain, salt) {}",
            "function parseCsvRow(line, delimiter) {}",
        ),
    ],
)
def test_a_question_is_nearer_to_the_code_it_means_than_to_other_code(query: str, right: str, wrong: str) -> None:
    near, far = likeness(load_encoder(), query, [right, wrong])
    assert near > far


def test_the_spelling_convention_of_an_identifier_does_not_matter() -> None:
    encoder = load_encoder()
    vectors = encoder.encode(["read_config_file", "readConfigFile", "ReadConfigFile", "read config file"], "passage")
    assert all(np.array_equal(vectors[0], row) for row in vectors[1:])


def test_a_text_has_the_same_vector_bit_for_bit_in_any_batch() -> None:
    encoder = load_encoder()
    texts = [f"function number {n} reads table {n % 7}\n{CODE * (n % 5)}" for n in range(150)]
    together = encoder.encode(texts, "passage")
    alone = np.concatenate([encoder.encode([text], "passage") for text in texts])
    assert np.array_equal(together, alone)


def test_a_second_load_gives_the_same_vectors_bit_for_bit() -> None:
    first, second = load_static(MODEL_DIR), load_static(MODEL_DIR)
    assert first.name == second.name
    assert np.array_equal(first.encode([CODE], "passage"), second.encode([CODE], "passage"))


def test_the_model_is_loaded_once_a_process() -> None:
    assert load_encoder("bundled") is load_encoder()


def test_threads_that_load_at_once_get_one_model() -> None:
    embedding._load.cache_clear()
    found: list[Encoder] = []
    barrier = threading.Barrier(6)

    def work() -> None:
        barrier.wait()
        found.append(load_encoder())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len({id(encoder) for encoder in found}) == 1


def test_the_words_of_a_question_around_its_subject_weigh_little() -> None:
    bare, framed = load_encoder().encode(["session cookie", "how and where is the session cookie handled"], "query")
    assert float(bare @ framed) > 0.8


def test_threads_that_share_the_model_get_the_vectors_of_one_thread() -> None:
    encoder = load_static(MODEL_DIR)
    texts = [f"thread {n} word{n} opens socket{n}" for n in range(300)]
    expected = load_static(MODEL_DIR).encode(texts, "passage")
    found: list[bool] = []
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        found.append(np.array_equal(encoder.encode(texts, "passage"), expected))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "x9_" * 350_000,
        "é" * 1_000_000,
        "ﷺ" * 1_000_000,
        " ".join(map(str, range(150_000))),
        "漢字" * 500_000,
    ],
    ids=["one word", "digits", "accents", "expanding", "distinct", "ideographs"],
)
def test_a_megabyte_in_one_text_takes_a_bounded_time(text: str) -> None:
    encoder = load_encoder()
    begin = time.perf_counter()
    encoder.encode([text], "passage")
    assert time.perf_counter() - begin < 2  # measured: under 50 ms


def test_text_past_the_limit_changes_nothing() -> None:
    encoder = load_encoder()
    head = (CODE * 400)[:MAX_CHARACTERS]
    assert np.array_equal(encoder.encode([head], "passage"), encoder.encode([head + " quaternion"], "passage"))


@settings(deadline=None)  # loading the model counts for the first text, and a busy machine for all
@given(st.text(max_size=400))
def test_any_text_gives_a_finite_unit_or_zero_row(text: str) -> None:
    row = load_encoder().encode([text], "query")[0]
    norm = float(np.linalg.norm(row))
    assert norm == 0 or abs(norm - 1) < 1e-4


def test_a_lone_surrogate_is_just_a_character() -> None:
    assert load_encoder().encode(["read\ud800 file"], "passage").any()


def test_loading_and_encoding_imports_neither_torch_nor_a_tokenizer_library() -> None:
    script = (
        "import sys, time; import numpy; begin = time.perf_counter()\n"
        "from code_intel_server.index.vectors.embedding import load_encoder\n"
        "load_encoder().encode(['read a file'], 'query')\n"
        "print(round((time.perf_counter() - begin) * 1000), *[m for m in sys.modules if m.split('.')[0] in\n"
        "      {'torch', 'transformers', 'tokenizers', 'sentence_transformers', 'onnxruntime', 'chromadb'}])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    milliseconds, *modules = done.stdout.split()
    assert modules == []
    print(f"loaded and encoded in {milliseconds} ms after numpy")


# --- its files -------------------------------------------------------------------------------------------------------


def test_the_models_name_is_the_digest_of_its_content() -> None:
    digest = hashlib.sha256()
    for name in ("vocabulary.txt", "vectors.npy", "scales.npy"):
        digest.update((MODEL_DIR / name).read_bytes())
    assert load_encoder().name == f"bundled-{digest.hexdigest()[:12]}"


def test_the_model_is_a_few_megabytes_and_names_its_source_and_licence() -> None:
    assert sum(path.stat().st_size for path in MODEL_DIR.iterdir()) < 10_000_000
    assert "Apache-2.0" in json.loads((MODEL_DIR / "model.json").read_text(encoding="utf-8"))["source"]
    assert "Apache License" in (MODEL_DIR / "NOTICE.md").read_text(encoding="utf-8")


def test_the_wheel_carries_the_model_and_its_licence() -> None:
    builder = WheelBuilder(str(Path(__file__).parents[2]))
    carried = {
        Path(file.distribution_path).name
        for file in builder.recurse_included_files()
        if "index/model/" in file.distribution_path
    }
    assert carried == {"model.json", "vocabulary.txt", "vectors.npy", "scales.npy", "NOTICE.md", "LICENSE"}


def test_no_token_is_longer_than_a_word_may_be() -> None:
    tokens = (MODEL_DIR / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
    assert len(tokens) == len(set(tokens))
    assert max(len(token.removeprefix("##")) for token in tokens) <= MAX_WORD


@pytest.mark.parametrize("name", ["model.json", "vocabulary.txt", "vectors.npy", "scales.npy"])
def test_a_missing_or_damaged_file_is_a_clear_error(tmp_path: Path, name: str) -> None:
    folder = copied_model(tmp_path)
    (folder / name).write_bytes(b"\x93damaged")
    with pytest.raises(Unavailable) as damaged:
        load_static(folder)
    (folder / name).unlink()
    with pytest.raises(Unavailable) as missing:
        load_static(folder)
    assert {damaged.value.key, missing.value.key} == {"tool_errors.embedding.model_unavailable"}


def test_a_vocabulary_that_does_not_fit_the_table_is_refused(tmp_path: Path) -> None:
    folder = copied_model(tmp_path)
    with (folder / "vocabulary.txt").open("a", encoding="utf-8") as file:
        file.write("\nextra")
    with pytest.raises(Unavailable, match="model_unavailable"):
        load_static(folder)
