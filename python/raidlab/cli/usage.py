"""What is wrong with the words of a command, as one line with place, value and what is accepted."""

from __future__ import annotations

import re
import sys

from raidlab.errors import EXIT_BAD_INPUT, InputError

# Of what Typer says of a value, the part that tells what would fit.
_FITS = re.compile(r"Input should be (.+?)(?:, (?:unable|got) .+)?|Value error, .+ is not one of (.+)", re.DOTALL)
_PLAIN = (("a valid integer", "a whole number"), ("a valid number", "a number"))


def mistake_of(error: Exception) -> InputError | None:
    """The mistake that the parser of commands has found; None for any other error, and where it only shows help.

    Typer has brought the parser's errors from several places over its versions; what they carry has stayed.
    """
    is_usage = hasattr(error, "format_message") and getattr(error, "exit_code", None) == EXIT_BAD_INPUT
    if not is_usage or type(error).__name__ == "NoArgsIsHelpError":
        return None
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    message = str(getattr(error, "message", "") or error.format_message())  # type: ignore[attr-defined]
    command = (getattr(context, "command_path", None) or "raidlab").rpartition("raidlab")[2]
    command = f"raidlab{command}"
    accepted = f"what {command} --help lists"
    option = getattr(error, "option_name", None)
    if option is not None:
        near = getattr(error, "possibilities", None)
        is_unknown = hasattr(error, "possibilities")
        said = f"is no option of {command}" if is_unknown else "needs a value behind it"
        instead = ", ".join(sorted(near)) if near else accepted if is_unknown else "the value after a space, or after ="
        return InputError.one(option, said, accepted=instead)
    if parameter is None:
        return InputError.one(command, _as_clause(message), accepted=accepted)
    where = (
        parameter.opts[-1]
        if parameter.param_type_name == "option"
        else (parameter.metavar or parameter.name).strip("{}")
    )
    if "Missing" in type(error).__name__:
        return InputError.one(where, "is missing", accepted=_as_clause(parameter.help or accepted))
    fits = _FITS.fullmatch(message)
    if fits is None:
        return InputError.one(where, _as_clause(message), accepted=accepted)
    accepted = fits[1] or fits[2]
    for theirs, ours in _PLAIN:
        accepted = accepted.replace(theirs, ours)
    return InputError.one(where, "is not accepted", value=_said(parameter.opts), accepted=accepted)


def _as_clause(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")


def _said(names: list[str]) -> str | None:
    """What stands behind an option on the command line; None where it is not found."""
    for at, word in enumerate(sys.argv):
        name, sign, value = word.partition("=")
        if name in names:
            found = value if sign else next(iter(sys.argv[at + 1 :]), "")
            return f"'{found}'"
    return None
