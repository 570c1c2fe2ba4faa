"""Headers of safetensors files: names, formats and shapes of all weights, without the weights.

In: the files of a checkpoint, or headers that were saved as JSON. Out: `Tensor`s. A file starts with the length of its
header (8 bytes, little-endian), then the header as JSON; nothing after that is read.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servingplan.inventory.files import parse_object, read_object, refuse

INDEX = "model.safetensors.index.json"
SAVED_HEADERS = "safetensors-headers.json"
"""Headers without their files: an object of file name to header, or one header."""

LONGEST_HEADER = 100_000_000
"""What the format allows."""

_LENGTH_BYTES = 8
_POINTER = b"version https://git-lfs"

ELEMENT_BITS: Mapping[str, int] = {
    "F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16, "U16": 16,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "I8": 8, "U8": 8, "BOOL": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One weight: name, format, elements as stored."""

    name: str
    dtype: str
    elements: int

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self.elements * ELEMENT_BITS[self.dtype] // 8


def headers_of(folder: Path) -> Sequence[Tensor] | None:
    """All weights of the checkpoint in a folder; None where it has neither weight files nor saved headers.

    Raises InputError for headers that cannot be read, and for shards that are missing.
    """
    saved = folder / SAVED_HEADERS
    if saved.exists():
        return tuple(_saved(saved))
    files = _files(folder)
    return tuple(tensor for file in files for tensor in _of_file(file)) if files else None


def indexed_bytes(folder: Path) -> int | None:
    """Bytes of all weights as the index of a sharded checkpoint states them; None where there is no index."""
    path = folder / INDEX
    if not path.exists():
        return None
    metadata = read_object(path).get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    if isinstance(total, bool) or not isinstance(total, int | float) or total <= 0:
        refuse(path, "InvalidField", f"metadata.total_size is {total!r}, not a number of bytes: download it again")
    return int(total)


def _files(folder: Path) -> Sequence[Path]:
    """The files of the checkpoint, of its index where there is one. No file at all is fine, some missing are not."""
    index = folder / INDEX
    if not index.exists():
        found = sorted(folder.glob("*.safetensors"))
        # A second copy in Mistral's own format stands beside many of their checkpoints.
        return [file for file in found if not file.name.startswith("consolidated")] or found
    names = read_object(index).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        refuse(index, "InvalidField", "weight_map is missing or no object of file names: download it again")
    files = [folder / name for name in sorted(set(names.values()))]
    missing = [file.name for file in files if not file.exists()]
    if missing and len(missing) < len(files):
        refuse(
            index,
            "ShardMissing",
            f"{len(missing)} of {len(files)} files are missing, the first is {missing[0]}: "
            "download them, or remove the others to size it from the index",
        )
    return [] if missing else files


def _of_file(path: Path) -> Iterator[Tensor]:
    try:
        with path.open("rb") as stream:
            start = stream.read(len(_POINTER))
            if start == _POINTER:
                refuse(path, "Pointer", "it is a Git LFS pointer, not the file: run git lfs pull, or save its header")
            size = path.stat().st_size
            length = struct.unpack("<Q", start[:_LENGTH_BYTES])[0] if len(start) >= _LENGTH_BYTES else 0
            if not 0 < length <= min(LONGEST_HEADER, size - _LENGTH_BYTES):
                refuse(path, "NoSafetensors", "it does not start with the header of a safetensors file: download again")
            stream.seek(_LENGTH_BYTES)
            header = parse_object(path, stream.read(length), "its header")
    except OSError as error:
        refuse(path, "FileUnreadable", f"it cannot be read: {error.strerror or error}")
    end = max((_end(path, name, entry) for name, entry in header.items() if name != "__metadata__"), default=0)
    if end + _LENGTH_BYTES + length != size:
        wanted = end + _LENGTH_BYTES + length
        refuse(path, "Truncated", f"it has {size:,} bytes, and its header says {wanted:,}: download it again")
    yield from _tensors(path, header)


def _end(path: Path, name: str, entry: Any) -> int:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(isinstance(offset, int) for offset in offsets):
        refuse(path, "InvalidHeader", f"tensor {name} has no data_offsets: download the file again")
    return int(offsets[1])


def _saved(path: Path) -> Iterator[Tensor]:
    content = read_object(path)
    sections = [content] if _is_header(content) else list(content.values())
    if not sections or not all(isinstance(section, dict) and _is_header(section) for section in sections):
        refuse(path, "InvalidHeader", "it holds no headers: save an object of file name to header, or one header")
    for section in sections:
        yield from _tensors(path, section)


def _is_header(value: Mapping[str, Any]) -> bool:
    entries = [entry for name, entry in value.items() if name != "__metadata__"]
    return bool(entries) and all(isinstance(entry, dict) and "dtype" in entry for entry in entries)


def _tensors(path: Path, header: Mapping[str, Any]) -> Iterator[Tensor]:
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype, shape = entry.get("dtype"), entry.get("shape")
        if dtype not in ELEMENT_BITS:
            refuse(path, "InvalidHeader", f"tensor {name} has the format {dtype!r}, which is not known: report it")
        if not isinstance(shape, list) or not all(isinstance(length, int) and length >= 0 for length in shape):
            refuse(path, "InvalidHeader", f"tensor {name} has the shape {shape!r}: download the file again")
        yield Tensor(name=name, dtype=dtype, elements=math.prod(shape))
