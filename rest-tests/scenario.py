"""A scenario's steps, as OpenSearch's own YAML tests have them, on any server.

    do: {indices.create: {index: t, body: {}}}     the call of opensearch-py of that name;
                                                   with `catch`: missing, conflict, bad_request,
                                                   a status, or /what the body must hold/
    set: {_scroll_id: id}                          keeps a value for later, as $id
    match: {hits.total.value: 1}                   equal; /…/ matches text; {} inside may hold more
    close_to: {hits.hits.0._score: 0.25}           equal to 1e-6 of its size
    length: {hits.hits: 3}
    is_true, is_false: path                        there and neither false, 0 nor empty
    gt, gte, lt, lte: {took: 0}
    ids: [a, b]                                    the ids of hits, in order

A path leads through the last answer by keys and places, `\\.` is a dot in a key, `$body` all.
"""

import json
import math
import operator
import re
from typing import Any

from opensearchpy import OpenSearch, TransportError

STATUSES = {"bad_request": 400, "missing": 404, "conflict": 409, "unavailable": 503}
COMPARED = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}
ABSENT = object()


class Failed(AssertionError):
    """A step whose expectation does not hold."""


class Run:
    """One scenario on one server."""

    def __init__(self, client: OpenSearch) -> None:
        self.client = client
        self.answer: Any = None
        self.kept: dict[str, Any] = {}

    def step(self, step: dict[str, Any]) -> None:
        """Does what a step says; Failed with the answer where something else came."""
        ((name, told),) = step.items()
        try:
            getattr(self, f"_{name}", None) or self._fail(f"there is no step {name}")
            getattr(self, f"_{name}")(self._filled(told))
        except Failed as error:
            answer = json.dumps(self.answer, indent=1, default=str)
            raise Failed(f"{json.dumps(step)}\n{error}\nanswer: {answer[:4000]}") from None

    def _do(self, told: dict[str, Any]) -> None:
        caught = told.pop("catch", None)
        ((name, arguments),) = told.items()
        call: Any = self.client
        for part in name.split("."):
            call = getattr(call, part)
        try:
            self.answer = call(**(arguments or {}))
        except TransportError as error:
            self.answer = error.info
            if caught is None:
                self._fail(f"{error.status_code}, expected an answer")
            text = json.dumps(error.info, default=str)
            expected = STATUSES.get(caught, caught)
            if isinstance(expected, str):
                re.search(expected.strip("/"), text) or self._fail(f"expected {expected}")
            elif error.status_code != expected:
                self._fail(f"{error.status_code}, expected {expected}")
        else:
            caught is None or self._fail(f"expected {caught}")

    def _set(self, told: dict[str, str]) -> None:
        self.kept.update({name: self._at(path) for path, name in told.items()})

    def _match(self, told: dict[str, Any]) -> None:
        for path, expected in told.items():
            found = self._at(path)
            same(found, expected) or self._fail(f"{path} is {shown(found)}")

    def _close_to(self, told: dict[str, float]) -> None:
        for path, expected in told.items():
            found = self._at(path)
            number = isinstance(found, (int, float)) and not isinstance(found, bool)
            if not number or not math.isclose(found, expected, rel_tol=1e-6):
                self._fail(f"{path} is {shown(found)}")

    def _length(self, told: dict[str, int]) -> None:
        for path, expected in told.items():
            found = self._at(path)
            if not hasattr(found, "__len__") or len(found) != expected:
                self._fail(f"{path} is {shown(found)}")

    def _is_true(self, path: str) -> None:
        found = self._at(path)
        (found is not ABSENT and found) or self._fail(f"{path} is {shown(found)}")

    def _is_false(self, path: str) -> None:
        found = self._at(path)
        (found is ABSENT or not found) or self._fail(f"{path} is {shown(found)}")

    def _ids(self, expected: list[str]) -> None:
        found = [hit["_id"] for hit in self._at("hits.hits")]
        found == expected or self._fail(f"the ids are {found}")

    def __getattr__(self, name: str) -> Any:
        if (compared := COMPARED.get(name.removeprefix("_"))) is None:
            raise AttributeError(name)

        def check(told: dict[str, Any]) -> None:
            for path, bound in told.items():
                found = self._at(path)
                number = isinstance(found, (int, float))
                (number and compared(found, bound)) or self._fail(f"{path} is {shown(found)}")

        return check

    def _at(self, path: str) -> Any:
        found = self.answer
        for part in re.split(r"(?<!\\)\.", path.removeprefix("$body").removeprefix(".")):
            if not part:
                break
            key = self._filled(part.replace("\\.", "."))
            if isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, dict) and key in found:
                found = found[key]
            else:
                return ABSENT
        return found

    def _filled(self, told: Any) -> Any:
        """With what was kept in the place of its names."""
        if isinstance(told, dict):
            return {self._filled(key): self._filled(value) for key, value in told.items()}
        if isinstance(told, list):
            return [self._filled(each) for each in told]
        if isinstance(told, str) and told.startswith("$"):
            return self.kept.get(told[1:], told)
        return told

    def _fail(self, reason: str) -> None:
        raise Failed(reason)


def same(found: Any, expected: Any) -> bool:
    """Whether they are equal; text between slashes is a pattern, objects may hold more."""
    if isinstance(expected, str) and re.fullmatch(r"/.*/", expected, re.DOTALL):
        return isinstance(found, str) and bool(re.search(expected[1:-1], found))
    if isinstance(expected, dict) and isinstance(found, dict):
        return all(key in found and same(found[key], each) for key, each in expected.items())
    if isinstance(expected, list) and isinstance(found, list):
        pairs = zip(found, expected, strict=False)
        return len(found) == len(expected) and all(same(*pair) for pair in pairs)
    return type(found) in (type(expected), int, float) and found == expected


def shown(found: Any) -> str:
    return "absent" if found is ABSENT else json.dumps(found, default=str)
