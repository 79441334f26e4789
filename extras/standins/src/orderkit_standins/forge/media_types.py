"""
The media type of a file that a browser may be told.

Never says HTML: what a repository holds is not run.
"""

from __future__ import annotations

_SEARCHED_BYTES = 8_000
"""As many as Git reads to tell text from other data."""
_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def media_type(data: bytes) -> str:
    """Return the media type under which bytes are sent: a raster image, plain text, or neither."""
    return image_type(data) or (
        "application/octet-stream" if is_binary(data) else "text/plain;charset=utf-8"
    )


def image_type(data: bytes) -> str:
    """Return the media type of a raster image that browsers show, or empty."""
    for magic, media_type in _IMAGES.items():
        if data.startswith(magic):
            return media_type
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def is_binary(data: bytes) -> bool:
    """Say whether this is not text, as git judges it."""
    return b"\0" in data[:_SEARCHED_BYTES]
