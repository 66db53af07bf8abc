"""The one error of the demo: a line for the user, without a traceback."""


class DemoError(Exception):
    """Something from outside failed; the message says what, why and what to do."""
