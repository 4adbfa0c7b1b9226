"""The local model: what its vectors are like, and what it makes of odd texts and broken files."""

from __future__ import annotations

import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from recollect.models.errors import ExtraMissing, ModelDamaged
from recollect.models.locating import Installed
from recollect.orchestrator.embedding.interface import Embedder, Vectors
from recollect.orchestrator.embedding.onnx import OnnxEmbedder
from recollect.orchestrator.embedding.passages import PASSAGES_MAX
from recollect.orchestrator.search.ranking import passages
from tests.harness.models import real_model

TEXTS = [
    "The database ran out of connections at noon.",
    "At midday no more clients could reach the SQL server.",
    "We walked through the forest and picked mushrooms.",
    "Ships pass the lighthouse at night.",
]


@pytest.fixture(scope="module")
def installed() -> Installed:
    return real_model()


@pytest.fixture(scope="module")
def embedder(installed: Installed) -> OnnxEmbedder:
    return OnnxEmbedder(installed.folder, name=installed.name)


@pytest.fixture
def copied(installed: Installed, tmp_path: Path) -> Path:
    """The model in a folder that a test may change; its files are links until then."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.onnx").symlink_to(installed.folder / "model.onnx")
    shutil.copy(installed.folder / "tokenizer.json", folder)
    return folder


def norms(vectors: Vectors) -> list[float]:
    return [float(norm) for norm in np.linalg.norm(vectors, axis=1)]


def test_texts_of_like_meaning_are_near_without_a_word_in_common(embedder: OnnxEmbedder) -> None:
    vectors = embedder.embed_now(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (4, 384) == (4, embedder.dimensions)
    assert norms(vectors) == pytest.approx([1] * 4, abs=1e-5)
    near = vectors @ vectors.T
    assert near[0, 1] > 0.4
    assert near[0, 1] > max(near[0, 2], near[0, 3], near[1, 2], near[1, 3]) + 0.25


def test_it_is_an_embedder(embedder: OnnxEmbedder) -> None:
    as_declared: Embedder = embedder
    assert as_declared.model.startswith("all-MiniLM-L6-v2/384@")
    assert not as_declared.inline


def test_a_text_is_embedded_alike_alone_and_in_company(embedder: OnnxEmbedder) -> None:
    long = "A much longer text that tells of one thing after another. " * 30
    texts = [TEXTS[0], long, "short", TEXTS[2], *(f"filler number {n}" for n in range(80))]
    together = embedder.embed_now(texts)
    # The 8-bit model disturbs a lone word more than a sentence.
    for number, least in ((0, 0.97), (1, 0.97), (2, 0.9), (3, 0.97), (50, 0.97), (83, 0.97)):
        alone = embedder.embed_now([texts[number]])[0]
        assert float(alone @ together[number]) > least


def test_the_same_call_gives_the_same_vectors(embedder: OnnxEmbedder) -> None:
    assert np.array_equal(embedder.embed_now(TEXTS), embedder.embed_now(TEXTS))


def test_no_text_gives_no_row(embedder: OnnxEmbedder) -> None:
    assert embedder.embed_now([]).shape == (0, 384)


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "\ud800", "🎈", "日本語のテキスト", "x" * 200_000, "a b " * 50_000]
)
def test_odd_texts_have_vectors_too(embedder: OnnxEmbedder, text: str) -> None:
    vectors = embedder.embed_now([text, "something else"])
    assert norms(vectors) == pytest.approx([1, 1], abs=1e-5)


def test_the_end_of_a_long_text_counts(installed: Installed) -> None:
    embedder = OnnxEmbedder(installed.folder, name="windows", tokens_max=32)
    filler = "Ships pass the lighthouse at night. " * 10
    plain, with_end = embedder.embed_now([filler, filler + TEXTS[0]])
    query = embedder.embed_now([TEXTS[1]], "query")[0]
    assert query @ with_end > query @ plain + 0.05
    cutting = OnnxEmbedder(installed.folder, name="one", tokens_max=32, windows_max=1)
    vectors = cutting.embed_now([filler, filler + TEXTS[0]])
    assert np.array_equal(vectors[0], vectors[1])


def test_prefixes_tell_queries_from_documents(installed: Installed) -> None:
    plain = OnnxEmbedder(installed.folder, name="m")
    prefixed = OnnxEmbedder(
        installed.folder, name="m", query_prefix="query: ", document_prefix="passage: "
    )
    text = TEXTS[0]
    expected = plain.embed_now([f"query: {text}"])
    assert np.array_equal(prefixed.embed_now([text], "query"), expected)
    expected = plain.embed_now([f"passage: {text}"])
    assert np.array_equal(prefixed.embed_now([text]), expected)
    assert prefixed.model != plain.model


def unpacked(kept: bytes) -> Vectors:
    rows = np.frombuffer(kept, np.int8).reshape(-1, 384).astype(np.float32)
    vectors: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return vectors


def test_a_passage_is_pooled_over_its_own_tokens(installed: Installed) -> None:
    embedder = OnnxEmbedder(installed.folder, name="m", document_prefix="note: ", split=passages)
    text = f"{TEXTS[0]} {TEXTS[2]}"
    vectors, kept = embedder.embed_with_passages([TEXTS[3], text])
    assert np.allclose(vectors, embedder.embed_now([TEXTS[3], text]), atol=1e-5)
    assert kept[0] == b""
    parts = unpacked(kept[1])
    assert parts.shape == (2, 384)
    alone = embedder.embed_now([TEXTS[0], TEXTS[2]])
    for place in (0, 1):
        near = float(parts[place] @ alone[place])
        assert near > float(vectors[1] @ alone[place]) + 0.1
        assert near > float(parts[place] @ alone[1 - place]) + 0.3


def test_passages_are_found_in_every_window_of_a_long_text(installed: Installed) -> None:
    embedder = OnnxEmbedder(installed.folder, name="m", tokens_max=32, split=passages)
    filler = "Ships pass the lighthouse at night, and their crews look up. "
    text = filler * 4 + TEXTS[0]
    alone = embedder.embed_now([TEXTS[0]])[0]
    [(vector, kept)] = zip(*embedder.embed_with_passages([text]), strict=True)
    similar = unpacked(kept) @ alone
    assert len(similar) == 5
    assert int(np.argmax(similar)) == 4
    assert similar[4] > float(vector @ alone) + 0.2


def test_a_text_of_many_sentences_has_few_passages(installed: Installed) -> None:
    embedder = OnnxEmbedder(installed.folder, name="m", split=passages)
    _, [kept] = embedder.embed_with_passages([" ".join(TEXTS * 10)])
    assert unpacked(kept).shape == (PASSAGES_MAX, 384)


def test_a_passage_of_hardly_any_token_has_no_vector(installed: Installed) -> None:
    embedder = OnnxEmbedder(installed.folder, name="m", split=lambda text: [(0, 4), (5, len(text))])
    _, kept = embedder.embed_with_passages([f"Hmm. {TEXTS[0]}"])
    assert unpacked(kept[0]).shape == (1, 384)


def test_odd_texts_have_passages_too(installed: Installed) -> None:
    embedder = OnnxEmbedder(installed.folder, name="m", split=passages)
    odd = [
        "",
        "\0. \0 a b c.",
        "\ud800 is half a sign. 🎈 is a red balloon.",
        "一つ目の文です。 二つ目の文です。",
    ]
    vectors, kept = embedder.embed_with_passages([*odd, "a b c. " * 30_000])
    assert norms(vectors) == pytest.approx([1] * 5, abs=1e-5)
    *counts, many = [len(each) // 384 for each in kept]
    assert counts == [0, 0, 2, 0]
    assert 2 <= many <= PASSAGES_MAX


def test_without_a_mean_over_tokens_there_are_no_passages(installed: Installed) -> None:
    embedder = OnnxEmbedder(installed.folder, name="m", pooling="cls", split=passages)
    _, kept = embedder.embed_with_passages([" ".join(TEXTS)])
    assert kept == [b""]


def test_what_changes_vectors_changes_the_name_of_the_model(
    installed: Installed, copied: Path
) -> None:
    same = OnnxEmbedder(copied, name="m").model
    assert OnnxEmbedder(installed.folder, name="m", threads=2).model == same
    assert OnnxEmbedder(copied, name="m", pooling="cls").model != same
    assert OnnxEmbedder(copied, name="m", tokens_max=128).model != same
    # Line ends do not.
    path = copied / "tokenizer.json"
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))
    assert OnnxEmbedder(copied, name="m").model == same
    path.write_bytes(path.read_bytes().replace(b'"lowercase": true', b'"lowercase": false'))
    assert OnnxEmbedder(copied, name="m").model != same


def test_several_threads_may_embed_at_once(embedder: OnnxEmbedder) -> None:
    expected = [embedder.embed_now([text]) for text in TEXTS]
    wrong: list[str] = []

    def embed(turn: int) -> None:
        for at in range(turn, turn + 40):
            number = at % len(TEXTS)
            if not np.array_equal(embedder.embed_now([TEXTS[number]]), expected[number]):
                wrong.append(TEXTS[number])

    threads = [threading.Thread(target=embed, args=(turn,)) for turn in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"not a model", None])
def test_a_damaged_file_is_refused_by_name(copied: Path, name: str, content: bytes | None) -> None:
    path = copied / name
    whole = path.read_bytes()
    path.unlink()
    path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(ModelDamaged, match=name):
        OnnxEmbedder(copied, name="m")


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_an_absent_file_is_refused_by_name(copied: Path, name: str) -> None:
    (copied / name).unlink()
    with pytest.raises(ModelDamaged, match=name):
        OnnxEmbedder(copied, name="m")


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_a_missing_package_says_which_extra_to_install(
    copied: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ExtraMissing, match=rf"{package}: pip install 'recollect\[server\]'"):
        OnnxEmbedder(copied, name="m")
