"""How an effective batch is run: in parts of so many rows. Arithmetic alone, without torch."""

MARGIN = 1.03  # of what rows beyond those measured are expected to need
_ALL = 1 << 62


class Planner:
    """Finds the rows of a part. Where a limit is known the parts grow from one row on, as far as
    what was measured lets more rows fit. After an out-of-memory they are smaller and stay so.

    Bytes are peaks of the process or the card as they are measured: with all that is alive."""

    def __init__(self, limit_bytes: int = 0, start: int = 0) -> None:
        """`start`: rows of a part, where a plan says so."""
        self.size = start or (1 if limit_bytes else _ALL)
        self._limit_bytes = limit_bytes
        self._grows = limit_bytes > 0
        self._base = 0  # alive before a batch: the most so far
        self._rows, self._peak, self._per_row = 0, 0, 0.0  # of the largest part that ran

    def begin(self, base_bytes: int) -> None:
        """A batch begins while so much is alive. More than before is more for each of its parts: an
        optimizer's states come with the first step."""
        risen = max(0, base_bytes - self._base)
        self._base += risen
        self._peak += risen if self._rows else 0
        if self._rows and self._limit_bytes and self._expected(self.size) > self._limit_bytes:
            self.size = self._largest(self.size)

    def ran(self, rows: int, peak_bytes: int, wanted: int) -> None:
        """A part of so many rows did. `wanted`: rows of the batch."""
        if rows > self._rows:
            before = self._peak if self._rows else self._base
            self._per_row = max(0.0, (peak_bytes - before) / (rows - self._rows))
        if rows >= self._rows:
            self._rows, self._peak = rows, peak_bytes
        if self._grows and rows == self.size and rows < wanted:
            self.size = max(rows, self._largest(min(2 * rows, wanted)))

    def failed(self, rows: int) -> bool:
        """A part of so many rows ran out of memory. False: nothing smaller is left."""
        self._grows = False
        self.size = self._rows if rows // 2 <= self._rows < rows else rows // 2
        return self.size > 0

    def _expected(self, rows: int) -> float:
        more = rows - self._rows
        return self._peak + self._per_row * more * (MARGIN if more > 0 else 1 / MARGIN)

    def _largest(self, most: int) -> int:
        """The most rows up to `most` that are expected to fit; at least one."""
        while most > 1 and self._expected(most) > self._limit_bytes:
            most -= 1
        return most
