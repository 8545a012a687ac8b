#!/usr/bin/env python3
"""Writes tests/golden/portable_math.json: exp, log, log1p, expm1 and erfc to full precision by mpmath, and
the coefficients that sampler/numeric/portable_math.h has for erfc.

Those are of g(u) = (a + 1/2) exp(a^2) erfc(a) in u = (a - 4) / (a + 4), a >= 0: Chebyshev interpolation, as
powers of u. Run in a virtual environment with
    pip install mpmath
    scripts/reference/portable_math.py tests/golden/portable_math.json
"""

import json
import sys

import mpmath as mp

DEGREE = 23


def scaled_erfc(a):
    """exp(a^2) erfc(a)."""
    if a <= 40:
        return mp.exp(a * a) * mp.erfc(a)
    total, term = mp.mpf(0), mp.mpf(1)
    for k in range(60):
        total += term
        term *= -(2 * k + 1) / (2 * a * a)
    return total / (a * mp.sqrt(mp.pi))


def erfc_coefficients():
    def g(u):
        a = 4 * (1 + u) / (1 - u)
        return (a + mp.mpf(1) / 2) * scaled_erfc(a)

    count = DEGREE + 30
    angles = [mp.pi * (k + mp.mpf(1) / 2) / count for k in range(count)]
    values = [g(mp.cos(angle)) for angle in angles]
    series = [2 * sum(y * mp.cos(j * angle) for y, angle in zip(values, angles)) / count for j in range(DEGREE + 1)]
    series[0] /= 2
    powers = [mp.mpf(0)] * (DEGREE + 1)
    before, this = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]  # Chebyshev polynomials
    for j, factor in enumerate(series):
        for i, coefficient in enumerate(before):
            powers[i] += factor * coefficient
        before, this = this, [2 * a - b for a, b in zip([mp.mpf(0)] + this, before + [mp.mpf(0)] * 2)]
        assert len(before) == j + 2
    return [float(p) for p in powers]


def table(function, arguments):
    return [[x, float(function(mp.mpf(x)))] for x in arguments]


def main():
    mp.mp.dps = 60
    small = [1e-300, 1e-20, 1e-9, 1e-4, 0.01, 0.2, 0.3, 0.5, 0.7]
    signed = small + [-x for x in small]
    golden = {
        "exp": table(mp.exp, signed + [-700.0, -100.25, -37.5, -1.0, 1.0, 2.5, 88.75, 700.0, 709.5]),
        "log": table(mp.log, small + [0.75, 0.999999, 1.0, 1.0000001, 1.4, 1.5, 2.0, 1e5, 1e300, 5e-324, 2.3e-308, 1.79e308]),
        "log1p": table(mp.log1p, signed + [-0.999999, 1.0, 1e10]),
        "expm1": table(mp.expm1, signed + [-40.0, -1.0, 1.0, 30.0]),
        "erfc": table(mp.erfc, signed + [-30.0, -5.0, -2.0, -1.0, 1.0, 1.5, 2.0, 4.0, 5.0, 9.0, 15.0, 21.0, 26.0]),
        "erfc_coefficients": erfc_coefficients(),
    }
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(golden, out)
        out.write("\n")


if __name__ == "__main__":
    main()
