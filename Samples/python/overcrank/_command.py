# SPDX-License-Identifier: Apache-2.0
"""Runs the command, and turns its errors into exceptions."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Union

PathLike = Union[str, "os.PathLike[str]"]
#: A time in seconds or a speed. A text is passed to the command as it is, such as ``"250ms"``.
Number = Union[int, float, Fraction, str]

#: The code of an error that the command reported as text, by its exit status.
_CODES = {
    10: "limit_exceeded", 64: "usage", 65: "invalid_data", 66: "file_not_found",
    69: "device_unavailable", 70: "internal", 73: "cannot_create", 74: "io_error", 75: "timed_out",
    77: "no_permission", 130: "cancelled", 143: "cancelled",
}


class CommandError(Exception):
    """An error of the command.

    Attributes:
        code: The kind of error, such as ``"device_busy"``. It never changes between versions.
        message: The failed operation, its file or device, and the reason.
        hint: A remedy, or None.
        exit_status: The exit status of the command, such as 69 for a device that is unavailable.
            It is 127 if the command was not found, and negative if a signal ended it.
        document: The report that the command printed, or None. A recording that exceeded
            ``max_drops`` has one, and its file is kept.
    """

    def __init__(
        self, code: str, message: str, hint: str | None = None, exit_status: int = 70,
        document: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.code = code
        self.message = message
        self.hint = hint
        self.exit_status = exit_status
        self.document = document

    def __reduce__(self) -> tuple[Any, ...]:
        return CommandError, (self.code, self.message, self.hint, self.exit_status, self.document)


def text(value: Number) -> str:
    """A time or a speed as the command reads it. Floats are rounded to nanoseconds."""
    if isinstance(value, str):
        return value
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, float):
        return f"{value:.9f}".rstrip("0").rstrip(".")
    return str(value)


def path_text(path: PathLike) -> str:
    """A path that the command does not take for an option."""
    name = os.fspath(path)
    return f"./{name}" if name.startswith("-") else name


def program() -> str:
    """The path of the command: the environment variable ``SLOWMO``, or found on the ``PATH``."""
    name = os.environ.get("SLOWMO") or "slowmo"
    found = shutil.which(name)
    if found is None:
        raise CommandError(
            "command_not_found", f"the command {name} was not found",
            "install the package overcrank, or set the environment variable SLOWMO", 127)
    return found


def launch(
    arguments: Sequence[str], stderr: Any, descriptors: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Starts the command with standard output as a pipe. It inherits the descriptors."""
    # The command gets a session of its own. Ctrl-C in a terminal therefore reaches Python alone,
    # and the command is interrupted only once.
    return subprocess.Popen(
        [program(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
        start_new_session=True, pass_fds=descriptors)


def run(verb: str, *arguments: str) -> dict[str, Any]:
    """Runs a verb and returns its document.

    If Python is interrupted, the command is interrupted once, and the exception is raised again
    when the command has ended. A recording is then complete.

    Raises:
        CommandError: The exit status was not 0.
    """
    process = launch([verb, *arguments, "--json"], subprocess.PIPE)
    try:
        stdout, stderr = process.communicate()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.communicate()
        raise
    document = _document(stdout)
    if process.returncode != 0:
        raise failure(process.returncode, stderr, document)
    if document is None:
        raise CommandError("internal", f"slowmo {verb} printed no document")
    return document


def _document(stdout: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(stdout)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def failure(
    status: int, stderr: bytes, document: dict[str, Any] | None = None
) -> CommandError:
    """The exception for a command that has failed."""
    error = (document or {}).get("error")
    if error:
        # An error without other keys is no report.
        report = document if len(document or {}) > 2 else None
        return CommandError(error["code"], error["message"], error["hint"], status, report)
    code = _CODES.get(status, "internal")
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line]
    line = lines[-1] if lines else f"slowmo ended with the exit status {status}"
    for prefix in ("slowmo: ", "error: "):
        line = line.removeprefix(prefix)
    message, _, hint = line.rpartition("; ")
    return CommandError(code, message or hint, hint if message else None, status, document)


def option(name: str, value: Number | None) -> list[str]:
    """An option with its value, or nothing for None."""
    return [] if value is None else [f"--{name}", text(value)]


def flag(name: str, value: bool) -> list[str]:
    """An option without a value, if it is set."""
    return [f"--{name}"] if value else []



def fraction(value: str | None) -> Fraction | None:
    """A rate as the command prints it, such as ``240/1``."""
    return None if value is None else Fraction(value)
