"""Schemas: fields by name, in the short forms that people write."""

from collections.abc import Mapping
from typing import Any

from .errors import ArgumentError, DtypeError

FIELDS = ("keyword", "text", "integer", "float", "date", "boolean", "object", "nested", "vector")
DYNAMIC: dict[bool | str, str] = {True: "true", False: "false", "strict": "strict"}


def vector(dim: int, metric: str | None = None, **parameters: Any) -> dict[str, Any]:
    """A vector field of a schema.

    dim: dimensions of a vector; bits for dtype "bits".
    metric: "l2", "ip", "cosine", "hamming" or "jaccard". Not given: "l2", for bits "hamming".
    parameters: dtype, kind, code, m, ef_construction, nlist, seed, as lanewise.Index has them.
    """
    given = {"metric": metric, **parameters}
    return {"type": "vector", "dim": dim} | {k: v for k, v in given.items() if v is not None}


def full_schema(schema: Mapping[str, Any], dynamic: bool | str) -> dict[str, Any]:
    """A schema as the engine takes it."""
    if not isinstance(schema, Mapping):
        wrong = f"schema must be a dict of fields by name, not {type(schema).__name__}"
        raise DtypeError(wrong, "schema")
    if not (isinstance(dynamic, bool) or dynamic == "strict"):
        raise ArgumentError(f"dynamic={dynamic!r}: use True, False or 'strict'", "dynamic")
    fields = {name: _field(name, field) for name, field in schema.items()}
    return {"dynamic": DYNAMIC[dynamic], "fields": fields}


def in_nested(name: str, fields: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a field lies in nested objects."""
    outer = (name[:at] for at, letter in enumerate(name) if letter == ".")
    return any(fields.get(one, {}).get("type") == "nested" for one in outer)


def _field(name: Any, given: Any) -> Any:
    """A field of a schema, given by its type alone or with parameters."""
    if isinstance(given, str) and given in FIELDS[:-1]:
        return {"type": given}
    if isinstance(given, Mapping) and given.get("type") in FIELDS:
        unknown = (
            set(given) - {"type", "analyzer"} if given["type"] == "text" else set(given) - {"type"}
        )
        if unknown and given["type"] != "vector":
            wrong = f"schema: field {name!r}: {given['type']} takes no {sorted(map(str, unknown))}"
            raise ArgumentError(wrong, "schema")
        return given
    wrong = (
        f"schema: field {name!r} is {given!r}: use one of {', '.join(map(repr, FIELDS[:-1]))}, "
        "lanewise.vector(dim, ...), or a dict with 'type'"
    )
    raise ArgumentError(wrong, "schema")
