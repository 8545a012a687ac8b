"""Errors whose text is the one line that the user reads."""


class DryRunError(Exception):
    """The program could not be dry-run."""

    exit_status = 1


class UsageError(DryRunError):
    """The command line is wrong: what was expected, what came, where."""

    exit_status = 2
