"""The two contenders that do half of the work: loads alone, arithmetic alone."""

from .cases import Case, Form
from .contender import Contender, Prepared, Workplace
from .native import Harness, Job, Loads, Shape

NAME = "limit"
LOADS, STEP = "loads", "arithmetic: "


def loads_of(harness: Harness, features: int) -> Loads:
    """The widest loads that this CPU has."""
    return [each for each in harness.loads if not each.needs & ~features][-1]


def contenders(harness: Harness, features: int, case: Case) -> list[Contender]:
    """The limits of `case`; the arithmetic where a step is known."""
    loads = loads_of(harness, features)

    def prepare_loads(place: Workplace) -> Prepared | None:
        job = place.job(*_function(loads, case))
        job.n, job.per_call = case.row_bytes, place.count
        if case.form == Form.TILE:
            # Each row once, and each query once: registers can hold the rest.
            job.queries = 1
        return Prepared(job, "f4")

    found = [Contender(NAME, LOADS, prepare_loads)]
    steps = [
        step
        for step in harness.steps
        if (step.op.decode(), step.type.decode()) == (case.op, case.type)
        and not step.needs & ~features
        # A tile register's work is worth its filling only where many queries meet many rows.
        and (step.isa != b"amx" or case.form == Form.TILE)
    ]
    if steps:

        def prepare_step(place: Workplace) -> Prepared:
            job: Job = place.job(Shape.ROWS, steps[-1].run)
            job.count, job.n = place.count * place.queries, case.row_bytes
            return Prepared(job, "f4")

        found.append(Contender(NAME, STEP + steps[-1].what.decode(), prepare_step))
    return found


def _function(loads: Loads, case: Case) -> tuple[Shape, int]:
    if case.form == Form.ONE:
        return Shape.PAIR_F32, loads.one
    if case.form == Form.IDS:
        return Shape.IDS, loads.ids
    return Shape.ROWS, loads.rows
