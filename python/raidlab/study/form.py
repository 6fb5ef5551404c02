"""What an expression comes to by its form alone: a number, true or false, or a text.

Invariant: what is refused here has no value whatever its names stand for.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Literal

# Of a name that may be a number or a text nothing is known.
Kind = Literal["number", "truth", "text", "any"]
_WORDS: dict[Kind, str] = {"number": "a number", "truth": "true or false", "text": "a text"}
# How many arguments functions take, at least and at most.
_ARGUMENTS: dict[str, tuple[int, int | None]] = {
    "abs": (1, 1),
    "sqrt": (1, 1),
    "log": (1, 2),
    "median": (1, None),
    "about": (2, 3),
}
_OTHERS = (2, None)


def shortened(text: str) -> str:
    """A text as an error shows it."""
    return text if len(text) <= 80 else f"{text[:77]}..."


def kind_of(node: ast.expr, numbers: Container[str], constant: Callable[[ast.expr], float | None]) -> Kind:
    """What a part of an expression comes to; a `ValueError` where it can come to nothing.

    ``numbers`` are names that stand for numbers; ``constant`` gives the value of what names nothing.
    """
    return _Form(numbers, constant).kind(node)


@dataclass(frozen=True)
class _Form:
    numbers: Container[str]
    constant: Callable[[ast.expr], float | None]

    def kind(self, node: ast.expr) -> Kind:
        match node:
            case ast.Constant(value=constant):
                return "text" if isinstance(constant, str) else "number"
            case ast.Name(id=name):
                return "number" if name in self.numbers else "any"
            case ast.BinOp() | ast.UnaryOp(op=ast.USub()) | ast.Call():
                return self._reckoned(node)
            case ast.IfExp(test=test, body=body, orelse=other):
                self._truths([test], node)
                return self._alike((body, other), node)
            case ast.Compare(left=left, comparators=rest):
                self._alike((left, *rest), node)
            case ast.BoolOp(values=values):
                self._truths(values, node)
            case ast.UnaryOp(operand=operand):
                self._truths([operand], node)
        return "truth"

    def _reckoned(self, node: ast.expr) -> Kind:
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                self._numbers((left, right), node)
                if isinstance(op, ast.Div) and self.constant(right) == 0:
                    raise ValueError(f"'{_written(node)}' divides by 0")
            case ast.UnaryOp(operand=operand):
                self._numbers([operand], node)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                self._numbers(arguments, node)
                least, most = _ARGUMENTS.get(name, _OTHERS)
                if not least <= len(arguments) <= (most or len(arguments)):
                    takes = f"{least}" if most == least else f"{least} or {'more' if most is None else most}"
                    raise ValueError(f"'{_written(node)}' gives {name} {len(arguments)} arguments; accepted: {takes}")
                return "truth" if name == "about" else "number"
        return "number"

    def _numbers(self, parts: Iterable[ast.expr], whole: ast.expr) -> None:
        for part in parts:
            if (found := self.kind(part)) in ("text", "truth"):
                raise ValueError(f"'{_written(part)}' in '{_written(whole)}' is {_WORDS[found]}; accepted: a number")

    def _truths(self, parts: Iterable[ast.expr], whole: ast.expr) -> None:
        for part in parts:
            if self.kind(part) == "text":
                raise ValueError(f"'{_written(part)}' in '{_written(whole)}' is a text; accepted: true or false")

    def _alike(self, parts: Iterable[ast.expr], whole: ast.expr) -> Kind:
        kinds: list[Kind] = sorted({self.kind(part) for part in parts} - {"any"})
        if len(kinds) > 1:
            said = " and ".join(_WORDS[kind] for kind in kinds)
            raise ValueError(f"'{_written(whole)}' sets {said} beside each other")
        return kinds[0] if kinds else "any"


def _written(node: ast.expr) -> str:
    return shortened(ast.unparse(node))
