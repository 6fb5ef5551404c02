"""Expressions over named numbers: ``100 * small_write_5 / small_write_0``.

Invariants:

- An expression is Python's syntax and none of its powers: numbers, texts, names, arithmetic, comparisons, ``and or
  not``, ``a if b else c``, and the functions listed here. Whatever else is refused when it is read, not when it is
  evaluated.
- Its value is a function of what stands behind its names.
- Evaluating one costs no more than its length: arithmetic is on floating-point numbers alone, so neither ``9**9**9``
  nor ``'a' * 3000000000`` builds anything, and how deeply it nests is bounded.
"""

from __future__ import annotations

import ast
import math
import operator
import statistics
import warnings
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from raidlab.study.form import Kind, kind_of, shortened

Operand = float | str
# How far apart two figures are that a study calls the same, where it does not say, in percent.
ABOUT_PERCENT = 5.0
_LONGEST = 2000
# A sum of so many terms, or as many brackets; what evaluates it calls itself for each.
_DEEPEST = 200


class DividesByZeroError(ValueError):
    """What stands behind the names of a divisor comes to 0."""

    def __init__(self, message: str, names: frozenset[str]) -> None:
        super().__init__(message)
        self.names = names


def furthest(wanted: float, *values: float) -> float:
    """Of several values the one that is furthest from the first: what stands for all of them where all are meant."""
    return max(values, key=lambda value: abs(value - wanted))


def about(first: float, second: float, percent: float = ABOUT_PERCENT) -> bool:
    """Whether two figures differ by at most ``percent`` of the larger."""
    return abs(first - second) <= percent / 100 * max(abs(first), abs(second))


FUNCTIONS: dict[str, Callable[..., float | bool]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "sqrt": math.sqrt,
    "log": math.log,
    "median": lambda *values: statistics.median(values),
    "about": about,
    "furthest": furthest,
}


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        raise ValueError(f"{base:g} ** {exponent:g} is too large") from None


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: _power,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_ORDERS = {"<": -1, "<=": -1, ">": 1, ">=": 1}


@dataclass(frozen=True)
class Expression:
    """An expression that has been read."""

    text: str
    names: frozenset[str]
    """The numbers it needs."""
    _root: ast.expr

    def value(self, known: Mapping[str, Operand]) -> float | bool:
        """Its value, given what stands behind its names; a division by zero and the like is a `ValueError`.

        Examples
        --------
        >>> read("100 * b / a").value({"a": 4.0, "b": 1.0})
        25.0
        >>> read("a > b and about(a, 4.1)").value({"a": 4.0, "b": 1.0})
        True
        """
        try:
            found = _value(self._root, known)
            if isinstance(found, str) or not math.isfinite(found):
                raise ValueError("it is no finite number")
            return found if isinstance(found, bool) else float(found)
        except DividesByZeroError as error:
            raise DividesByZeroError(f"'{shortened(self.text)}' has no value: {error}", error.names) from None
        except (ArithmeticError, TypeError, ValueError) as error:
            raise ValueError(f"'{shortened(self.text)}' has no value: {error}") from None

    def kind(self, numbers: Container[str]) -> Kind:
        """What it comes to, by its form alone; names in ``numbers`` are numbers, others may also be texts.

        A `ValueError` for what no names could give a value: a text where a number is needed, a division by 0.

        Examples
        --------
        >>> read("a > 2 * b").kind({"a", "b"})
        'truth'
        >>> read("a / (2 - 2)").kind({"a"})
        Traceback (most recent call last):
        ValueError: 'a / (2 - 2)' divides by 0
        """
        return kind_of(self._root, numbers, _constant)

    def check_decidable(self, *, measured: bool) -> None:
        """Raise a `ValueError` where it is more than comparisons joined by ``and``, ``or``, ``not``.

        ``measured`` figures are never equal to the last digit, so ``==`` and ``!=`` say nothing of them.
        """

        def decide(comparison: Relation) -> bool:
            if measured and comparison.sign in ("==", "!="):
                said = f"{comparison.first.text} {comparison.sign} {comparison.second.text}"
                raise ValueError(f"'{said}' compares measured figures to the last digit; about(a, b, PERCENT) does not")
            return True

        self.decided(decide)

    @property
    def sides(self) -> tuple[Expression, Expression] | None:
        """What is set beside each other, where it is a single comparison."""
        match self._root:
            case ast.Compare(left=left, comparators=[right]):
                return _part(left), _part(right)
        return None

    @property
    def factor(self) -> tuple[float, Expression]:
        """The constant that it is so many times, above 0, and the rest; 1 and itself where it is no such product.

        Examples
        --------
        >>> times, rest = read("2 * 0.5 * max(a, b)").factor
        >>> times, rest.text
        (1.0, 'max(a, b)')
        >>> read("a * b").factor[0]
        1.0
        """
        match self._root:
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                for constant, rest in ((left, right), (right, left)):
                    if (times := _constant(constant)) is not None and times > 0 and _constant(rest) is None:
                        return times, _part(rest)
        return 1.0, self

    @property
    def quotient(self) -> tuple[float, Expression, Expression] | None:
        """A constant, a name and the name it is divided by, where it is such a quotient so many times; else None.

        Examples
        --------
        >>> times, above, below = read("100 * a / b").quotient
        >>> times, above.text, below.text
        (100.0, 'a', 'b')
        >>> read("(a + c) / b").quotient is None
        True
        """
        times, rest = self.factor
        match rest._root:
            case ast.BinOp(left=left, op=ast.Div(), right=ast.Name() as below):
                more, above = _part(left).factor
                if isinstance(above._root, ast.Name):
                    return times * more, above, _part(below)
        return None

    def decided(self, decide: Callable[[Relation], bool | None]) -> bool | None:
        """What it says where comparisons may be undecided (None).

        What is undecided stays so unless the rest decides: false and undecided is false (Kleene's logic). What is less
        than ``min(a, b)`` is less than a and less than b, each a comparison of its own. More than comparisons (``<``,
        ``>``, ``about``) joined by ``and``, ``or``, ``not`` is a `ValueError`.

        Examples
        --------
        >>> read("a > b and about(a, c)").decided(lambda one: one.value({"a": 2.0, "b": 1.0, "c": 2.0}))
        True
        """
        return self.deciding(decide)[0]

    def deciding(self, decide: Callable[[Relation], bool | None]) -> tuple[bool | None, list[Relation]]:
        """What it says as `decided` does, and the comparisons by which it does: where it fails, those that fail it.

        Examples
        --------
        >>> known = {"a": 1.0, "b": 2.0, "c": 3.0}
        >>> found, by = read("(a > b or b > a) and a > c").deciding(lambda one: one.value(known))
        >>> found, [one.second.text for one in by]
        (False, ['c'])
        """
        return _decided(self._root, decide, is_asked=True)

    @property
    def is_name(self) -> bool:
        """Whether it is a name alone."""
        return isinstance(self._root, ast.Name)

    @property
    def keeps_unit(self) -> bool:
        """Whether it is in the unit of its names: of sums, multiples, extremes of them."""
        return _keeps_unit(self._root)

    @property
    def keeps_sign(self) -> bool:
        """Whether it is negative only where a number in it is: nothing is taken from anything.

        Examples
        --------
        >>> read("100 * a / max(b, c)").keeps_sign, read("a - b").keeps_sign
        (True, False)
        """
        parts = list(ast.walk(self._root))
        is_taken = any(isinstance(part, ast.Sub | ast.USub) for part in parts)
        return not is_taken and not any(isinstance(part, ast.Name) and part.id == "log" for part in parts)

    @property
    def stems(self) -> str:
        """Its formula with each name as far as its last ``_``, by which alike formulas have one text.

        Examples
        --------
        >>> read("art_f6 + 2*aat_f6").stems
        'art + 2 * aat'
        """
        root = _copy(self._root)
        for node in ast.walk(root):
            if isinstance(node, ast.Name) and node.id not in FUNCTIONS:
                node.id = node.id.rpartition("_")[0] or node.id
        return ast.unparse(root)

    def worded(self, words: Mapping[str, str], known: Mapping[str, Operand]) -> str:
        """It with words in the place of its names; of ``max`` and ``min`` the one that it is.

        Examples
        --------
        >>> words = {"a": "reads", "b": "writes"}
        >>> read("max(a, b)").worded(words, {"a": 1.0, "b": 3.0})
        'writes, the greatest of 2'
        >>> [read(text).worded(words, {}) for text in ("a + 9 * b", "(a + b) / 2", "0.75 * a + 0.25 * b", "a - b")]
        ['reads and 9 times writes together', 'the mean of reads and writes',
         'the mean of reads (75 %) and writes (25 %)', 'reads less writes']
        """
        return _worded(self._root, words, known)


@dataclass(frozen=True)
class Relation:
    """Two figures set beside each other within an expression."""

    first: Expression
    sign: str
    """``<``, ``<=``, ``>``, ``>=``, ``==``, ``!=`` or ``about``."""
    second: Expression
    within: Expression
    """How far apart they may be, in percent, where the sign is ``about``."""
    is_asked: bool
    """Whether the expression asks for it; else (``not``) for its contrary."""

    @property
    def names(self) -> frozenset[str]:
        """The numbers it needs."""
        return self.first.names | self.second.names | self.within.names

    def value(self, known: Mapping[str, Operand]) -> bool:
        """Whether it holds, by the figures themselves."""
        first, second = self.first.value(known), self.second.value(known)
        if self.sign == "about":
            return about(first, second, self.within.value(known))
        return next(_COMPARE[op] for op, sign in _SIGNS.items() if sign == self.sign)(first, second)

    def margins(self, known: Mapping[str, Operand]) -> list[float]:
        """By how much it holds, on each side: above 0 where it does."""
        return self.margins_of(self.first.value(known), self.second.value(known), self.within.value(known))

    def margins_of(self, first: float, second: float, within: float) -> list[float]:
        """The same for given figures, of which two may be apart by ``within`` percent where the sign is ``about``."""
        if self.sign in _ORDERS:
            return [_ORDERS[self.sign] * (first - second)]
        if self.sign != "about":
            said = f"{self.first.text} {self.sign} {self.second.text}"
            raise ValueError(f"'{said}' is no comparison that could be undecided")
        allowed = within / 100 * max(abs(first), abs(second))
        return [allowed - (first - second), allowed + (first - second)]


@lru_cache(maxsize=1024)
def read(text: str) -> Expression:
    """Read an expression; a `ValueError` says what of it is not understood."""
    if len(text) > _LONGEST:
        raise ValueError(f"is longer than {_LONGEST} characters")
    try:
        with warnings.catch_warnings():
            # Python would warn of its own grammar ("invalid decimal literal"), in words that name no file.
            warnings.simplefilter("ignore", SyntaxWarning)
            root = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Studies are restated with "a ~ b"; here a function says it, so that it can say how near.
        hint = f"; 'a ~ b' is written about(a, b, {ABOUT_PERCENT:g})" if "~" in text else ""
        raise ValueError(f"'{shortened(text)}' is no expression{hint}") from None
    names: set[str] = set()
    _check(root, names, text, _DEEPEST)
    return Expression(text, frozenset(names), root)


def _check(node: ast.expr, names: set[str], text: str, levels: int) -> None:
    parts: list[ast.expr] = []
    understood = True
    match node:
        case ast.Constant(value=constant):
            understood = type(constant) in (int, float, str)
        case ast.Name(id=name):
            names.add(name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            parts = [left, right]
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            parts = [operand]
        case ast.BoolOp(values=values):
            parts = values
        case ast.IfExp(test=test, body=body, orelse=other):
            parts = [test, body, other]
        case ast.Compare(left=left, ops=ops, comparators=rest) if all(type(op) in _COMPARE for op in ops):
            parts = [left, *rest]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            parts = arguments
        case _:
            understood = False
    if not understood:
        known = ", ".join(FUNCTIONS)
        what = shortened(ast.get_source_segment(text.strip(), node) or type(node).__name__)
        raise ValueError(f"'{what}' in '{shortened(text)}' is not understood; functions are {known}")
    if parts and not levels:
        raise ValueError(f"'{shortened(text)}' is nested too deeply; accepted: at most {_DEEPEST} levels")
    for part in parts:
        _check(part, names, text, levels - 1)


def _constant(node: ast.expr) -> float | None:
    """The value of what names nothing."""
    if any(isinstance(part, ast.Name) and part.id not in FUNCTIONS for part in ast.walk(node)):
        return None
    found = Expression(ast.unparse(node), frozenset(), node).value({})
    return float(found)


# What part of an expression says, and the comparisons by which it does.
_Said = tuple[bool | None, list[Relation]]


def _decided(node: ast.expr, decide: Callable[[Relation], bool | None], *, is_asked: bool) -> _Said:
    match node:
        case ast.BoolOp(op=op, values=values):
            parts = [_decided(value, decide, is_asked=is_asked) for value in values]
            return _joined(parts, decides=isinstance(op, ast.Or))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner, by = _decided(operand, decide, is_asked=not is_asked)
            return None if inner is None else not inner, by
        case ast.Compare(left=left, ops=ops, comparators=rest):
            sides = [left, *rest]
            signs = [_SIGNS[type(op)] for op in ops]
            triples = [
                (first, sign, second)
                for index, sign in enumerate(signs)
                for first in _each(sides[index], "max" if "<" in sign else "min" if ">" in sign else "")
                for second in _each(sides[index + 1], "min" if "<" in sign else "max" if ">" in sign else "")
            ]
            percent: list[ast.expr] = []
        case ast.Call(func=ast.Name(id="about"), args=[first, second, *percent]):
            triples = [(first, "about", second)]
        case _:
            raise ValueError(f"'{ast.unparse(node)}' is no comparison that could be undecided")
    within = _part(percent[0]) if percent else read(f"{ABOUT_PERCENT:g}")
    relations = [Relation(_part(a), sign, _part(b), within, is_asked) for a, sign, b in triples]
    return _joined([(decide(one), [one]) for one in relations], decides=False)


def _joined(parts: Sequence[_Said], *, decides: bool) -> _Said:
    """What parts say of which one that says ``decides`` decides."""
    found = [said for said, _ in parts]
    whole = decides if decides in found else None if None in found else not decides
    return whole, [one for said, by in parts if said is whole for one in by]


def _worded(node: ast.expr, words: Mapping[str, str], known: Mapping[str, Operand]) -> str:
    def told(part: ast.expr) -> str:
        return _worded(part, words, known)

    match node:
        case ast.Name(id=name):
            return words.get(name, name)
        case ast.Constant(value=constant):
            return str(constant)
        case ast.Call(func=ast.Name(id="median"), args=arguments):
            return f"the median of {len(arguments)}"
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=arguments):
            values = [_number(part, known) for part in arguments]
            chosen = arguments[values.index(max(values) if name == "max" else min(values))]
            return f"{told(chosen)}, the {'greatest' if name == 'max' else 'least'} of {len(arguments)}"
        case ast.BinOp(op=ast.Add()):
            terms = [_part(part) for part in _terms(node)]
            weights, rest = zip(*(term.factor for term in terms), strict=True)
            if math.isclose(math.fsum(weights), 1):
                shares = zip(rest, weights, strict=True)
                return f"the mean of {_listed([f'{told(one._root)} ({100 * share:g} %)' for one, share in shares])}"
            return f"{_listed([told(term._root) for term in terms])} together"
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return f"{told(left)} less {told(right)}"
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return f"{told(left)} times {told(right)}"
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            if _constant(right) == len(parts := _terms(left)) > 1:
                return f"the mean of {_listed([told(part) for part in parts])}"
            return f"{told(left)} divided by {told(right)}"
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return f"{name} of {_listed([told(part) for part in arguments])}"
    return ast.unparse(node)


def _terms(node: ast.expr) -> list[ast.expr]:
    """What a sum is of."""
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_terms(left), *_terms(right)]
    return [node]


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def _keeps_unit(node: ast.expr) -> bool:
    match node:
        case ast.Name():
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _keeps_unit(left) and _keeps_unit(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return any(_constant(one) is not None and _keeps_unit(two) for one, two in ((left, right), (right, left)))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _constant(right) is not None and _keeps_unit(left)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _keeps_unit(operand)
        case ast.Call(func=ast.Name(id="max" | "min" | "median" | "abs"), args=arguments):
            return all(_keeps_unit(one) for one in arguments)
    return False


def _copy(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body


def _part(node: ast.expr) -> Expression:
    return read(ast.unparse(node))


def _each(node: ast.expr, name: str) -> list[ast.expr]:
    """What stands in ``max(...)`` or ``min(...)``, where that is the name; else the expression itself."""
    match node:
        case ast.Call(func=ast.Name(id=found), args=arguments) if found == name:
            return arguments
    return [node]


def _value(node: ast.expr, known: Mapping[str, Operand]) -> Any:
    match node:
        case ast.Constant(value=constant):
            return constant
        case ast.Name(id=name):
            return known[name]
        case ast.BinOp(left=left, op=op, right=right):
            first, second = _number(left, known), _number(right, known)
            if second == 0 and isinstance(op, ast.Div):
                raise DividesByZeroError("division by zero", _part(right).names)
            return _BINARY[type(op)](first, second)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand, known)
        case ast.UnaryOp(operand=operand):
            return not _value(operand, known)
        case ast.BoolOp(op=op, values=values):
            found = [_value(value, known) for value in values]
            return all(found) if isinstance(op, ast.And) else any(found)
        case ast.IfExp(test=test, body=body, orelse=other):
            return _value(body if _value(test, known) else other, known)
        case ast.Compare(left=left, ops=ops, comparators=rest):
            sides = [_value(side, known) for side in (left, *rest)]
            return all(_COMPARE[type(op)](sides[i], sides[i + 1]) for i, op in enumerate(ops))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name](*(_number(argument, known) for argument in arguments))
    raise AssertionError("refused when it was read")


def _number(node: ast.expr, known: Mapping[str, Operand]) -> float:
    found = _value(node, known)
    if isinstance(found, str):
        raise ValueError(f"'{shortened(found)}' is a text where a number is needed")
    return float(found)
