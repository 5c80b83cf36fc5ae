"""Makes wrong variants of a Python module: one small change of its syntax tree each.

The changes are those by which people err: ``<`` for ``<=``, ``and`` for ``or``, a forgotten ``not``, a number that is
off by one, a branch that is always or never taken, a statement or an element left out, two arguments swapped. Places
in which a change means nothing to a caller are left out by rule: annotations, decorators, ``__all__``, ``__repr__``,
assertions, abstract methods, the texts of errors and logs. The number of a limit is not changed by one: what is right
with room for 16,384 is right with room for one more. How it is compared with is changed.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

__all__ = ["Mutant", "mutants_of"]

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_NAMES: Final = {"all": "any", "any": "all", "min": "max", "max": "min"}
_UNCHANGED_FIELDS: Final = {"annotation", "returns", "decorator_list", "bases", "keywords_of_class", "type_comment"}
_UNCHANGED_FUNCTIONS: Final = {"__repr__", "__str__"}
_UNCHANGED_DECORATORS: Final = {"abstractmethod", "overload"}
_UNCHANGED_CALLS: Final = {"_log", "_logger", "logger", "warnings", "TypeVar", "isinstance", "issubclass", "cast"}
_SHORTEST_CONTEXT: Final = 40
"""Characters: a change is shown with so much of the expression around it that a reader finds it."""

_Path: TypeAlias = tuple[ast.AST, ...]
_Change: TypeAlias = tuple[ast.AST, str, int | None, ast.AST | None]
"""Parent, field, position in the field's list, and the new node; without one the old node is left out."""


@dataclass(frozen=True)
class Mutant:
    """One wrong variant of a module.

    Parameters
    ----------
    function
        The qualified name of the function in which it differs; empty at the module's level.
    change
        What differs, as source before and after. With a number where the function has the same change again.
    lines
        The changed lines, the first and the last of them.
    statement
        The lines of the statement around the change, without the statements inside it.
    outermost
        Name and first line of the outermost function around the change; None where the change takes an import to work.
    constant
        The module's constant whose value the change is in, if nothing else at the module's level uses it.
    make
        Returns the wrong module's tree.
    """

    function: str
    change: str
    lines: tuple[int, int]
    statement: tuple[int, int]
    outermost: tuple[str, int] | None
    constant: str | None
    make: Callable[[], ast.Module]


def mutants_of(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of the source.

    Examples
    --------
    >>> [mutant.change for mutant in mutants_of("def positive(x): return x > 0 and x < 9")][:2]
    ['return x > 0 and x < 9 -> return None', 'return x > 0 and x < 9 -> return x > 0 or x < 9']
    """
    tree = ast.parse(source)
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for at, (change, path) in enumerate(_changes(tree)):
        function, outermost = _place(path)
        text = _described(change, path)
        seen[function, text] += 1
        text += f" (number {seen[function, text]})" if seen[function, text] > 1 else ""
        node = _old(change)
        if not hasattr(node, "lineno"):
            node = change[0]
        lines = (node.lineno, node.end_lineno or node.lineno)  # type: ignore[attr-defined]
        made = functools.partial(_made, source, at)
        constant = None if outermost else _constant(tree, path)
        found.append(Mutant(function, text, lines, _statement(path) or lines, outermost, constant, made))
    return found


def _made(source: str, at: int) -> ast.Module:
    tree = ast.parse(source)
    for number, (change, _) in enumerate(_changes(tree)):
        if number == at:
            _apply(change)
            return ast.fix_missing_locations(tree)
    raise IndexError(at)


def _old(change: _Change) -> Any:
    parent, field, position, _ = change
    value = getattr(parent, field)
    return value if position is None else value[position]


def _apply(change: _Change) -> Callable[[], None]:
    """Change the tree; returns what takes the change back."""
    parent, field, position, new = change
    fields = ("keys", "values") if isinstance(parent, ast.Dict) and new is None else (field,)
    before = {name: getattr(parent, name) for name in fields}
    if new is not None:
        ast.copy_location(new, _old(change))
    for name, old in before.items():
        inserted = [] if new is None else [new]
        setattr(parent, name, new if position is None else [*old[:position], *inserted, *old[position + 1 :]])

    def back() -> None:
        for name, old in before.items():
            setattr(parent, name, old)

    return back


def _described(change: _Change, path: _Path) -> str:
    """The least part of the source around a change that tells a reader where it is, before and after."""
    parent, field, position, new = change
    old = _old(change)
    if isinstance(parent, ast.List | ast.Set | ast.Tuple | ast.MatchOr) and new is None:
        return f"without {ast.unparse(old)} in {_short(ast.unparse(parent))}"
    if isinstance(parent, ast.Dict) and new is None:
        return f"without {ast.unparse(parent.keys[position or 0] or old)}: in {_short(ast.unparse(parent))}"
    if isinstance(old, ast.match_case):
        return f"without case {ast.unparse(old.pattern)}" + (f" if {ast.unparse(old.guard)}" if old.guard else "")
    if isinstance(parent, ast.If | ast.IfExp | ast.While | ast.match_case) and field in ("test", "guard"):
        value = "" if new is None else ast.unparse(new)
        word = "case" if isinstance(parent, ast.match_case) else type(parent).__name__.lower().removesuffix("exp")
        return f"{word} {_short(ast.unparse(old))} -> {'always' if value != 'False' else 'never'}"
    if isinstance(parent, ast.comprehension) and field == "ifs":
        return f"for ... if {_short(ast.unparse(old))} -> always"
    node: ast.AST = old if isinstance(old, ast.expr | ast.stmt) else parent
    before = _simple(node)
    for around in reversed(path[: path.index(node)] if node in path else path):
        if len(before) >= _SHORTEST_CONTEXT or not isinstance(around, ast.expr | ast.stmt):
            break
        if isinstance(around, ast.stmt) and hasattr(around, "body"):
            break
        node, before = around, _simple(around)
    if node is old:
        return f"{_short(before)} -> {'' if new is None else ast.unparse(new)}"
    back = _apply(change)
    after = _simple(node)
    back()
    return f"{_short(before)} -> {_short(after)}"


def _simple(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 240 else f"{text[:120]} ... {text[-100:]}"


def _place(path: _Path) -> tuple[str, tuple[str, int] | None]:
    """The name of the function (or class) around a change, and the outermost function whose body holds it."""
    names, outermost = [], None
    for node, inner in zip(path, (*path[1:], None), strict=True):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        if isinstance(node, ast.FunctionDef) and outermost is None and (inner is None or inner in node.body):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            outermost = (node.name, first)
    return ".".join(names), outermost


def _constant(tree: ast.Module, path: _Path) -> str | None:
    statement = path[1] if len(path) > 1 else None
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            own = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
            if not own & _read(statement) and not any(name in _read(other) for other in tree.body):
                return name
    return None


def _read(node: ast.AST) -> set[str]:
    """The names that are read when a statement at a module's level runs; bodies of functions run later."""
    found, pending = set(), [node]
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            found.add(part.id)
        for field, value in ast.iter_fields(part):
            if field == "body" and isinstance(part, ast.FunctionDef | ast.Lambda):
                continue
            pending += [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, ast.AST)]
    return found


def _statement(path: _Path) -> tuple[int, int] | None:
    for node in reversed(path):
        if isinstance(node, ast.stmt):
            body: list[ast.stmt] = getattr(node, "body", [])
            return node.lineno, max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
    return None


# --- where a change means something -------------------------------------------------------------------------------


def _changes(tree: ast.Module) -> Iterator[tuple[_Change, _Path]]:
    yield from _inside(tree, (tree,))


def _inside(node: ast.AST, path: _Path) -> Iterator[tuple[_Change, _Path]]:
    for change in _of(node, path):
        yield change, path
    for field, value in ast.iter_fields(node):
        if field in _UNCHANGED_FIELDS or (isinstance(node, ast.ClassDef) and field == "keywords"):
            continue
        for position, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not _left_out(child):
                for change in _at(node, field, position, child, path):
                    yield change, path
                if not isinstance(child, ast.Raise):  # the error's text
                    yield from _inside(child, (*path, child))


def _left_out(node: ast.AST) -> bool:
    match node:
        case ast.Assert() | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
            return True
        case ast.FunctionDef(name=name, decorator_list=decorators):
            words = {part for decorator in decorators for part in ast.unparse(decorator).split(".")}
            return name in _UNCHANGED_FUNCTIONS or bool(words & _UNCHANGED_DECORATORS)
        case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Raise(exc=ast.Name(id="NotImplementedError")):
            return True
        case ast.Call(func=function):
            return ast.unparse(function).split(".")[0] in _UNCHANGED_CALLS
        case ast.Expr(value=value):
            return isinstance(value, ast.Constant) or _left_out(value)  # a docstring
    return False


# --- the changes ----------------------------------------------------------------------------------------------------


def _of(node: ast.AST, path: _Path) -> Iterator[_Change]:
    """The changes of a node that leave the node itself in its place."""
    match node:
        case ast.Compare(ops=ops):
            for at, op in enumerate(ops):
                yield node, "ops", at, _COMPARISONS[type(op)]()
        case ast.BoolOp(op=op):
            yield node, "op", None, ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.BinOp(op=op, left=left) | ast.AugAssign(op=op, target=left):
            if not (isinstance(op, ast.Mod) and isinstance(left, ast.Constant | ast.JoinedStr)):
                yield node, "op", None, _ARITHMETIC[type(op)]()
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Constant):
            yield node, "test", None, ast.Constant(True)
            yield node, "test", None, ast.Constant(False)
        case ast.While(test=test) if not isinstance(test, ast.Constant):
            yield node, "test", None, ast.Constant(False)
        case ast.comprehension(ifs=ifs):
            for at in range(len(ifs)):
                yield node, "ifs", at, ast.Constant(True)
        case ast.match_case(guard=guard) if guard is not None:
            yield node, "guard", None, ast.Constant(True)
        case ast.Match(cases=cases):
            for at, case in enumerate(cases):
                never = ast.match_case(case.pattern, ast.Constant(False), case.body)
                yield node, "cases", at, never
        case ast.MatchOr(patterns=patterns) if len(patterns) > 2:
            for at in range(len(patterns)):
                yield node, "patterns", at, None
        case ast.List(elts=elements, ctx=ast.Load()) | ast.Set(elts=elements):
            for at in range(len(elements) if len(elements) > 1 or isinstance(node, ast.List) else 0):
                yield node, "elts", at, None
        case ast.Tuple(elts=elements, ctx=ast.Load()) if _counts_as_a_set(node, path):
            for at in range(len(elements)):
                yield node, "elts", at, None
        case ast.Call(args=[first, second, *_], func=function) if not {type(first), type(second)} & {ast.Starred}:
            if ast.dump(first) != ast.dump(second) and ast.unparse(function) not in _NAMES:
                swapped = ast.Call(node.func, [second, first, *node.args[2:]], node.keywords)
                yield path[-2], *_where(path[-2], node), swapped
        case ast.Name(id=name, ctx=ast.Load()) if name in _NAMES:
            yield path[-2], *_where(path[-2], node), ast.Name(_NAMES[name], ast.Load())


def _at(parent: ast.AST, field: str, position: int | None, child: ast.AST, path: _Path) -> Iterator[_Change]:
    """The changes that put something else in a node's place."""
    if isinstance(parent, ast.Dict) and field == "values":
        yield parent, field, position, None
    match child:
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            if not isinstance(parent, ast.MatchValue):
                yield parent, field, position, operand
        case ast.Constant(value=bool(value)) if not isinstance(parent, ast.MatchSingleton):
            yield parent, field, position, ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)) if not (
            isinstance(parent, ast.MatchValue) or any(map(_is_limit, path))
        ):
            yield parent, field, position, ast.Constant(value + 1)
            yield parent, field, position, ast.Constant(value - 1)
        case ast.Continue():
            yield parent, field, position, ast.Break()
        case ast.Break():
            yield parent, field, position, ast.Continue()
        case ast.Return(value=value):
            for other in _other_returns(value, path):
                yield parent, field, position, ast.Return(ast.Constant(other))
        case ast.Raise() | ast.AugAssign() | ast.Delete() | ast.Expr():
            if not isinstance(child, ast.Expr) or not isinstance(child.value, ast.Yield | ast.YieldFrom):
                yield parent, field, position, ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield parent, field, position, ast.Pass()


def _is_limit(node: ast.AST) -> bool:
    """Whether a module's constant gets a number here that is too large for one more to matter."""
    if not (isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "Final" and node.value is not None):
        return False
    if not all(isinstance(part, ast.BinOp | ast.operator | ast.Constant) for part in ast.walk(node.value)):
        return False
    number = eval(compile(ast.Expression(node.value), "<constant>", "eval"), {})
    return isinstance(number, int | float) and number >= 50


def _other_returns(value: ast.expr | None, path: _Path) -> Sequence[bool | None]:
    """What else a function might return: None, and in functions that return truth values another of these."""
    function = next(node for node in reversed(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    names = set(ast.unparse(function.returns).split(" | ")) if function.returns else set()
    truths: list[bool | None] = [
        truth for truth, name in ((True, "bool"), (False, "bool"), (None, "None")) if name in names
    ]
    if value is None:
        return ()
    if isinstance(value, ast.Constant) and (isinstance(value.value, bool) or value.value is None):
        return [truth for truth in truths if truth is not value.value and {truth, value.value} != {True, False}]
    return [None]


def _counts_as_a_set(node: ast.AST, path: _Path) -> bool:
    """Whether a tuple lists alternatives: right of ``in``, looped over, or the value of a module's constant."""
    parent = path[-2]
    match parent:
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[right]):
            return right is node
        case ast.For(iter=right) | ast.comprehension(iter=right):
            return right is node
        case ast.Assign() | ast.AnnAssign():
            return len(path) == 3
    return False


def _where(parent: ast.AST, child: ast.AST) -> tuple[str, int | None]:
    for field, value in ast.iter_fields(parent):
        if value is child:
            return field, None
        if isinstance(value, list) and any(one is child for one in value):
            return field, next(at for at, one in enumerate(value) if one is child)
    raise ValueError(f"{ast.dump(child)} is not in {ast.dump(parent)}")
