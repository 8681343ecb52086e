"""A backend whose server has died, for tests of what a lost store does."""

from __future__ import annotations


class GoneBackend:
    """Raises on every call, as torch's TCPStore does after its server died."""

    def set(self, key: str, value: bytes) -> None:
        raise RuntimeError(f"set {key} ({len(value)} B): Connection reset by peer")

    def add(self, key: str, amount: int) -> int:
        raise RuntimeError(f"add {amount} to {key}: Connection reset by peer")

    def read(self, key: str) -> bytes | None:
        raise RuntimeError(f"check {key}: Connection reset by peer")
