"""The rows of a part, by arithmetic: a program of which the law of memory is known runs batches."""

import pytest

from hpo._plan import Planner

MIB = 1 << 20


class Program:
    """Uses base + gradients + rows * per_row at the peak of a part; after the first batch an
    optimizer's states on top."""

    def __init__(self, limit, per_row, base=100, states=0, start=0):
        self.limit, self.per_row, self.base, self.states = limit, per_row, base, states
        self.planner = Planner(limit, start)
        self.ooms = 0
        self.parts = []

    def batch(self, rows):
        self.planner.begin(self.base)
        while True:
            self.parts = []
            first = 0
            while first < rows:
                part = min(self.planner.size, rows - first)
                peak = self.base + part * self.per_row
                if peak > self.limit:
                    self.ooms += 1
                    if not self.planner.failed(part):
                        return False
                    break
                self.planner.ran(part, peak, rows)
                self.parts.append(part)
                first += part
            else:
                self.base += self.states
                self.states = 0
                return True


def test_what_fits_whole_is_run_whole_after_the_first_batches():
    program = Program(limit=1000, per_row=10)
    for _ in range(4):
        assert program.batch(32)
    assert program.parts == [32] and program.ooms == 0


def test_the_first_batch_measures_with_small_parts():
    program = Program(limit=1000, per_row=10)
    program.batch(32)
    assert program.parts == [1, 2, 4, 8, 16, 1]


@pytest.mark.parametrize("per_row", [20, 37, 90, 450, 899])
def test_parts_grow_to_what_fits_without_an_oom(per_row):
    program = Program(limit=1000, per_row=per_row)
    for _ in range(8):
        assert program.batch(64)
    assert program.ooms == 0
    most = 900 // per_row
    assert most * 0.9 - 1 <= max(program.parts) <= most


def test_states_of_an_optimizer_make_the_parts_smaller_in_time():
    program = Program(limit=1000, per_row=20, states=400)
    for _ in range(6):
        assert program.batch(64)
    assert program.ooms == 0
    assert 22 <= max(program.parts) <= 25


def test_without_a_limit_the_batch_is_whole_and_halved_where_it_must_be():
    planner = Planner()
    assert planner.size >= 10**9
    assert planner.failed(48) and planner.size == 24
    planner.ran(24, 0, 48)
    assert planner.size == 24
    assert planner.failed(24) and planner.size == 12
    assert planner.failed(1) is False


def test_after_an_oom_the_largest_part_that_ran_is_taken_where_it_is_near():
    planner = Planner(limit_bytes=1000)
    planner.begin(0)
    for rows in (1, 2, 4, 8):
        planner.ran(rows, rows, 64)
    assert planner.size == 16
    assert planner.failed(16) and planner.size == 8
    assert planner.failed(8) and planner.size == 4
    planner.ran(4, 4, 64)
    assert planner.size == 4  # it was too much once: it stays


def test_one_row_too_many():
    program = Program(limit=1000, per_row=950)
    assert not program.batch(4) and program.ooms == 1


def test_a_plan_is_where_it_begins():
    program = Program(limit=1000, per_row=10, start=16)
    program.batch(64)
    assert program.parts[0] == 16
