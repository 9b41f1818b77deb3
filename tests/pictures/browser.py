"""Pages as a real browser shows them: Debian's Chromium without a screen, without a network."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_DARK, _LIGHT = "--blink-settings=preferredColorScheme=0", "--blink-settings=preferredColorScheme=1"
_SECONDS = 120
_COLOURS = 128


def browser() -> str | None:
    """The browser of this machine, None where there is none."""
    return next((path for name in _NAMES if (path := shutil.which(name)) is not None), None)


def take(page: Path, picture: Path, width: int, height: int, *, dark: bool = False) -> None:
    """A picture of the page's first `height` pixels at this width.

    Raises:
        RuntimeError: there is no browser, or it took none.
    """
    program = browser()
    if program is None:
        raise RuntimeError("no browser")
    with TemporaryDirectory(prefix="costguard-browser-") as profile:
        command = (
            program,
            *_FLAGS,
            f"--user-data-dir={profile}",
            _DARK if dark else _LIGHT,
            f"--window-size={width},{height}",
            f"--screenshot={picture}",
            page.absolute().as_uri(),
        )
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - the program found above
    if not picture.is_file():
        sys.stderr.write(done.stderr.decode("utf-8", "replace")[-2000:])
        message = f"{program} took no picture of {page}"
        raise RuntimeError(message)
    _shrink(picture)


def _shrink(picture: Path) -> None:
    """Pages have few colours: a palette of them is a third of the size and looks the same."""
    with Image.open(picture) as taken:
        small = taken.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    small.save(picture, optimize=True)
