"""A short soak; `make soak` runs ten minutes."""

import soak


def test_no_answer_is_wrong() -> None:
    done, wrong, memory = soak.soak(20, clients=3, seed=1, quiet=True)
    assert not wrong
    assert done["near"] > 100, done
    assert done["swap"] > 10, done
    assert done["merges"] > 0, done
    assert memory
