"""The short way to write filters and queries: fields and what they must be.

`{"price": {"lt": 50}, "color": "red"}` becomes the engine's form, which docs/tables.md
describes: `{"bool": {"filter": [{"range": ...}, {"term": ...}]}}`.
"""

from collections.abc import Mapping
from typing import Any

from .errors import ArgumentError, DtypeError
from .ids import names_of
from .schema import in_nested

_QUERIES = frozenset(
    (
        *("term", "terms", "range", "exists", "prefix", "wildcard", "match", "phrase", "ids"),
        *("bool", "boost", "constant", "nested", "nearest", "scored"),
    )
)
_BOUNDS = ("gt", "gte", "lt", "lte")
_OPERATORS = (*_BOUNDS, "eq", "ne", "in", "exists", "match", "phrase", "prefix", "wildcard")

Fields = Mapping[str, Mapping[str, Any]]
Query = dict[str, Any] | str


def to_query(argument: str, given: Any, fields: Fields, operator: str) -> Query:
    """The engine's form of `given`, a dict in its form or the short one, or a query of a text.

    fields: the schema's. operator: whether a text must have all of the words that it is
    asked for ("and") or any ("or").
    """
    if isinstance(given, str):
        return _words(argument, given, fields, operator)
    if not isinstance(given, Mapping):
        wrong = f"{argument} must be a dict such as {{'price': {{'lt': 50}}}}, not {_type(given)}"
        raise DtypeError(wrong, argument)
    clauses = [
        _engines(argument, name, asked, fields, operator)
        if name in _QUERIES and name not in fields
        else _field(argument, name, asked, fields, operator)
        for name, asked in given.items()
    ]
    if len(clauses) == 1:
        return clauses[0]
    return {"bool": {"must" if operator == "or" else "filter": clauses}} if clauses else "all"


def _words(argument: str, text: str, fields: Fields, operator: str) -> Query:
    """Words in any text field; in dynamic and nested ones only by their names."""
    texts = [
        name
        for name, field in fields.items()
        if field["type"] == "text" and not in_nested(name, fields)
    ]
    if not texts:
        example = f"{{'title': {text!r}}}"
        wrong = f"{argument}={text!r}: the schema has no text field: name a field, {example}"
        raise ArgumentError(wrong, argument)
    matches = [{"match": {"field": name, "text": text, "operator": operator}} for name in texts]
    return matches[0] if len(matches) == 1 else {"bool": {"should": matches}}


def _engines(argument: str, name: str, asked: Any, fields: Fields, operator: str) -> Query:
    """A query in the engine's form; queries within may be in the short one."""
    if name == "bool" and isinstance(asked, Mapping):
        inner = {}
        for clause, queries in asked.items():
            if clause == "minimum_should_match":
                inner[clause] = queries
                continue
            some = queries if isinstance(queries, (list, tuple)) else [queries]
            inner[clause] = [to_query(argument, query, fields, operator) for query in some]
        return {"bool": inner}
    if name in ("boost", "constant", "nested") and isinstance(asked, Mapping) and "query" in asked:
        query = to_query(argument, asked["query"], fields, operator)
        return {name: {**asked, "query": query}}
    if name == "ids":
        return {name: names_of(asked)}
    return {name: asked}


def _field(argument: str, name: str, asked: Any, fields: Fields, operator: str) -> Query:
    """What one field must be."""
    if not isinstance(name, str):
        raise DtypeError(f"{argument} has the key {name!r}: use a field's name", argument)
    if not isinstance(asked, Mapping):
        return _is(name, asked, fields, operator)
    unknown = [key for key in asked if key not in _OPERATORS]
    if unknown or not asked:
        known = ", ".join(_OPERATORS)
        wrong = f"{argument}: field {name!r} has {unknown or 'no operators'}: use any of {known}"
        raise ArgumentError(wrong, argument)
    clauses: list[Query] = []
    bounds = {key: asked[key] for key in _BOUNDS if key in asked}
    if bounds:
        clauses.append({"range": {"field": name, "range": bounds}})
    for key, value in asked.items():
        if key in ("eq", "in"):
            clauses.append(_is(name, value, fields, operator))
        elif key == "ne":
            clauses.append(_not(_is(name, value, fields, operator)))
        elif key == "exists":
            there: Query = {"exists": {"field": name}}
            clauses.append(there if value else _not(there))
        elif key in ("match", "phrase"):
            words = {"field": name, "text": value}
            clauses.append({key: words if key == "phrase" else {**words, "operator": operator}})
        elif key in ("prefix", "wildcard"):
            clauses.append({key: {"field": name, "value": value}})
    return clauses[0] if len(clauses) == 1 else {"bool": {"must": clauses}}


def _is(name: str, value: Any, fields: Fields, operator: str) -> Query:
    """Equal to a value, or to any of several; of a text, with its words."""
    if value is None:
        return _not({"exists": {"field": name}})
    several = not isinstance(value, (str, bytes, Mapping)) and hasattr(value, "__iter__")
    if fields.get(name, {}).get("type") == "text":
        texts = list(value) if several else [value]
        matches: list[Query] = [
            {"match": {"field": name, "text": text, "operator": operator}} for text in texts
        ]
        if len(matches) > 1:
            return {"bool": {"should": matches}}
        return matches[0] if matches else "none"
    if several:
        return {"terms": {"field": name, "values": list(value)}}
    return {"term": {"field": name, "value": value}}


def _not(query: Query) -> Query:
    return {"bool": {"must_not": [query]}}


def _type(given: Any) -> str:
    return type(given).__name__
