#!/usr/bin/env python3
"""Writes tests/golden/sobol.json: points of Sobol's sequence for sampler/simple/sobol_sequence.

SciPy's unscrambled points, as 32 binary digits. Run in a virtual environment with
    pip install scipy==1.17.1
    scripts/reference/sobol.py tests/golden/sobol.json
"""

import json
import sys

from scipy.stats import qmc

DIMENSIONS = 64
INDICES = [0, 1, 2, 3, 4, 5, 6, 7, 31, 100, 1023, 4711, 65535, 1000003]


def point(index):
    sequence = qmc.Sobol(DIMENSIONS, scramble=False, bits=32)
    if index > 0:
        sequence.fast_forward(index)
    return [int(round(x * 2**32)) for x in sequence.random(1)[0]]


def main():
    golden = {"dimensions": DIMENSIONS,
              "points": [{"index": index, "digits": point(index)} for index in INDICES]}
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(golden, out, separators=(",", ":"))
        out.write("\n")


if __name__ == "__main__":
    main()
