"""From the bytes of a policy file to its text. Pure."""

from __future__ import annotations

import codecs

from costguard.policy.syntax.problems import Mark, Problem, excerpt, invalid

MAX_BYTES = 64 * 1024  # of one file, read in under a second; the accounts of a thousand take about 55 KiB
MAX_TOTAL_BYTES = 1024 * 1024  # of all files together
_OTHER_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def too_long(path: str) -> Problem:
    """The problem of a file beyond the limit, which is not read any further."""
    message = f"the file is longer than {MAX_BYTES // 1024} KiB"
    return Problem(path, Mark(), "", message, "split it: rules may be spread over files under policies/")


def decoded(path: str, raw: bytes) -> str:
    """UTF-8, with or without its byte order mark.

    Raises:
        InvalidInputError: another encoding, broken bytes (with their line and column), or too long.
    """
    if len(raw) > MAX_BYTES:
        raise invalid((too_long(path),))
    if raw.startswith(_OTHER_MARKS):
        message = "the file is UTF-16 or UTF-32; expected UTF-8"
        raise invalid((Problem(path, Mark(), "", message, "save it as UTF-8"),))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        # with a byte order mark the codec counts from behind it
        behind = raw.removeprefix(codecs.BOM_UTF8)
        before = behind[: err.start].decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
        mark = Mark(before.count("\n") + 1, len(before) - before.rfind("\n"))
        message = f"byte 0x{behind[err.start]:02X} is not UTF-8"
        shown = excerpt(behind.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n"), mark)
        raise invalid((Problem(path, mark, "", message, "save the file as UTF-8", shown),)) from err
