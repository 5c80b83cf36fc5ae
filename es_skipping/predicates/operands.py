"""From the trees that Catalyst sends to typed operands: columns, literals, casts and calls.

An operand is opaque as a whole if any part of it is: two operands that look alike must be alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from es_skipping.predicates import reasons
from es_skipping.predicates.codec import value_from_data
from es_skipping.predicates.elements import field_of
from es_skipping.predicates.normal import MAX_DEPTH
from es_skipping.predicates.tree import Call, Cast, Column, Element, Literal, Opaque, Operand
from es_skipping.predicates.types import DataType, parse_type

__all__ = [
    "ELEMENT",
    "TRANSPARENT",
    "Tree",
    "UnreadableTree",
    "children_of",
    "class_of",
    "operand_of",
    "read_operand",
    "reason_of",
    "scalars_of",
    "text_of",
]

Tree = Mapping[str, Any]

ELEMENT: Final = "element"
"""Key of the node of a lambda's variable: the operand that the variable stands for. No request has one."""
TRANSPARENT: Final = frozenset({"Alias", "KnownNotNull", "KnownNullable"})
_OF_SPARK: Final = frozenset(f"org.apache.spark.sql.{name}" for name in ("avro", "execution", "protobuf"))
"""Spark's packages outside Catalyst; this module names some of their classes."""
_USER_FUNCTIONS: Final = frozenset({"ScalaUDF", "PythonUDF"})
_METHODS: Final = frozenset({"Invoke", "StaticInvoke"})
_OPAQUE_METHODS: Final = frozenset(
    {
        "aesEncrypt",  # Catalyst counts it as deterministic, but its salt is not
        "readSidePadding",  # a setting, which may change, says whether Spark puts it around a CHAR column
    }
)
# Expressions with a state that a tree does not carry (maps, sequences, classes, plans), so that two which look alike
# may differ; and those that say nothing about a row.
_NOT_CALLS: Final = frozenset(
    {
        "AtLeastNNonNulls",
        "BloomFilterMightContain",
        "DynamicPruningExpression",
        "InSubqueryExec",
        "ApplyFunctionExpression",
        "CallMethodViaReflection",
        "NewInstance",
        "AvroDataToCatalyst",
        "CatalystDataToAvro",
        "CatalystDataToProtobuf",
        "ProtobufDataToCatalyst",
        "CsvToStructs",
        "JsonToStructs",
        "JsonTuple",
        "StructsToCsv",
        "StructsToJson",
        "StructsToXml",
        "XmlToStructs",
        "InSet",
        "LikeAll",
        "LikeAny",
        "NotLikeAll",
        "NotLikeAny",
        "MultiGetJsonObject",
        "Encode",
    }
)


class UnreadableTree(ValueError):
    """Why a tree cannot be read."""


def read_operand(tree: Any) -> Operand:
    """Read what is compared: a column, a literal, a cast or a call.

    Examples
    --------
    >>> read_operand({"c": "Literal", "t": "decimal(4,2)", "v": "1.50"}).value
    Decimal('1.50')
    """
    try:
        return operand_of(tree, 0)
    except RecursionError:
        return Opaque(reasons.TOO_DEEP.text)
    except (UnreadableTree, KeyError, TypeError, ValueError, AttributeError) as error:
        return Opaque(reason_of(error))


def reason_of(error: Exception) -> str:
    return str(error) if isinstance(error, UnreadableTree) else f"malformed: {error!r}"[:300]


# --- the shape of a tree ------------------------------------------------------------------------------------------


def class_of(tree: Any) -> str:
    """A node's class: the bare name for Spark's own classes, with the package for those of other libraries."""
    if not isinstance(tree, Mapping) or not isinstance(tree.get("c"), str):
        raise UnreadableTree("malformed: a node without a class")
    name: str = tree["c"]
    package = tree.get("p")
    return name if package is None or package in _OF_SPARK else f"{text_of(package, 'package')}.{name}"


def text_of(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise UnreadableTree(f"malformed: {what} {str(value)[:100]!r} is not text")
    return value


def children_of(tree: Tree, count: int | None = None) -> list[Any]:
    children = tree.get("ch", [])
    if not isinstance(children, list) or (count is not None and len(children) != count):
        raise UnreadableTree(f"malformed: {tree.get('c')} with {len(children)} operands")
    return children


def child_of(tree: Tree) -> Any:
    """The only child."""
    (child,) = children_of(tree, 1)
    return child


def scalars_of(tree: Tree) -> Mapping[str, Any]:
    scalars = tree.get("a", {})
    if not isinstance(scalars, Mapping):
        raise UnreadableTree(f"malformed: the fields of {tree.get('c')}")
    return scalars


# --- operands -----------------------------------------------------------------------------------------------------


def operand_of(tree: Any, depth: int) -> Operand:
    name = class_of(tree)
    if depth > MAX_DEPTH:
        raise UnreadableTree(reasons.TOO_DEEP.text)
    if name in TRANSPARENT:
        return operand_of(child_of(tree), depth + 1)
    type_ = parse_type(text_of(tree.get("t"), "type"))
    if name == "AttributeReference":
        return Column((text_of(tree.get("name"), "column name"),), type_)
    if name == "NamedLambdaVariable" and isinstance(tree.get(ELEMENT), Operand):
        element: Operand = tree[ELEMENT]
        return element
    if name == "GetStructField":
        return _field(tree, type_, depth)
    if name == "Literal":
        return _literal(tree["v"], type_)
    if name == "Opaque":
        return Opaque(str(tree.get("why", "unknown expression")), type_)
    if name in _NOT_CALLS:
        return Opaque(reasons.NOT_UNDERSTOOD.of(name=name), type_)
    if name == "Cast":
        return _cast(tree, type_, depth)
    if name == "If" and (function := _user_function(tree, depth)) is not None:
        return function
    if name in _METHODS:
        return _method(tree, type_, depth)
    return _call(tree, name, type_, depth)


def _user_function(tree: Tree, depth: int) -> Operand | None:
    """What Spark makes of a Scala or Java function with a primitive argument: IF(x IS NULL, NULL, f(x)).

    In a filter it may be taken apart again into x IS NOT NULL and f(x), so the function alone stands for it: a function
    with such an argument is never asked about null, and where it is not asked the result is null.
    """
    condition, null, call = children_of(tree, 3)
    if class_of(null) != "Literal" or null.get("v") is not None or class_of(call) not in _USER_FUNCTIONS:
        return None
    pending = [condition]
    while pending:
        test = pending.pop()
        if class_of(test) == "Or":
            pending += children_of(test, 2)
        elif class_of(test) != "IsNull" or child_of(test) not in map(_bare, children_of(call)):
            return None
    return operand_of(call, depth + 1)


def _bare(tree: Any) -> Any:
    while class_of(tree) in TRANSPARENT:
        tree = child_of(tree)
    return tree


def _method(tree: Tree, type_: DataType, depth: int) -> Operand:
    """A function that Spark replaced by a method of its own: of a class, of an evaluator (an object without a state
    beside the fields that came along), or of the first argument."""
    scalars = dict(scalars_of(tree))
    method = text_of(scalars.get("functionName"), "name of a method")
    owner = str(scalars.get("staticObject", ""))
    children = children_of(tree)
    if class_of(tree) == "Invoke" and children and "evaluator" in scalars_of(children[0]):
        scalars |= scalars_of(children[0])
        owner = str(scalars["evaluator"])
        method, children = owner.rpartition(".")[2].removesuffix("Evaluator"), children[1:]
    if (owner and not owner.startswith("org.apache.spark.")) or method in _OPAQUE_METHODS:
        return Opaque(reasons.NOT_UNDERSTOOD.of(name=method), type_)
    return _call({**tree, "a": scalars, "ch": children}, method, type_, depth)


def _literal(data: Any, type_: DataType) -> Operand:
    if data is None:
        return Literal(None, type_)
    if not type_.supported:
        return Opaque(reasons.LITERAL.of(type=type_), type_)
    return Literal(value_from_data(data, type_), type_)


def _field(tree: Tree, type_: DataType, depth: int) -> Operand:
    field = text_of(tree.get("field"), "field name")
    parent = operand_of(child_of(tree), depth + 1)
    if isinstance(parent, Column):
        return Column((*parent.path, field), type_)
    if isinstance(parent, Element):
        return field_of(parent, field, type_)
    if isinstance(parent, Opaque):
        return Opaque(parent.reason, type_)
    return Call("getstructfield", (parent,), type_, (("field", field),))


def _cast(tree: Tree, type_: DataType, depth: int) -> Operand:
    child = operand_of(child_of(tree), depth + 1)
    if isinstance(child, Opaque):
        return Opaque(child.reason, type_)
    if _is_negative_zero(child):
        return Opaque(reasons.NEGATIVE_ZERO.text, type_)
    zone = tree.get("zone")
    mode = text_of(tree.get("mode", "LEGACY"), "mode of a cast")
    return Cast(child, type_, mode, None if zone is None else text_of(zone, "time zone"))


def _call(tree: Tree, name: str, type_: DataType, depth: int) -> Operand:
    scalars = dict(scalars_of(tree))
    if name in _USER_FUNCTIONS:
        function = scalars.get("udfName") or scalars.get("name")
        if not function:
            return Opaque(reasons.NAMELESS.text, type_)
        called = f"udf:{function}"
        # The others tell one use of it from the next, not one function from another.
        scalars = {name: value for name, value in scalars.items() if name == "code"}
    else:
        package, dot, simple = name.rpartition(".")
        called = f"{package}{dot}{simple.lower()}"
    arguments = tuple(operand_of(child, depth + 1) for child in children_of(tree))
    for argument in arguments:
        if isinstance(argument, Opaque):
            return Opaque(argument.reason, type_)  # two calls that look alike may differ in what is opaque
        if _is_negative_zero(argument):
            return Opaque(reasons.NEGATIVE_ZERO.text, type_)  # equal to 0.0, but a function may tell them apart
    parameters = tuple(sorted((str(key), _scalar_text(value)) for key, value in scalars.items()))
    return Call(called, arguments, type_, parameters)


def _scalar_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_negative_zero(operand: Operand) -> bool:
    return isinstance(operand, Literal) and isinstance(operand.value, float) and repr(operand.value) == "-0.0"
