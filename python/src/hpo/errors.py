"""What can go wrong, as exceptions. All but Stopped, OutOfMemory and BadData are HpoError."""


class HpoError(Exception):
    """Something that hpo was asked for cannot be done; the text says what helps."""


class InvalidInput(HpoError, ValueError):
    """A value, a range or a study that hpo cannot take."""


class ServerError(HpoError):
    """The server refused a call, or does not answer. `code` is gRPC's name of the reason."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class StudyFailed(HpoError):
    """Failures ended the study; the text holds the last one's traceback."""


class Stopped(Exception):
    """The trial is to end: pruned, out of time or cancelled. Let it pass through your code."""


class OutOfMemory(Exception):
    """This configuration does not fit; the sampler learns where not to look."""

    def __init__(self, text: str = "out of memory", needed_bytes: int = 0) -> None:
        super().__init__(text)
        self.needed_bytes = needed_bytes


class BadData(Exception):
    """The data is at fault: no other configuration would do better."""
