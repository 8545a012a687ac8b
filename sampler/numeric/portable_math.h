// exp, log and their kin whose last bit does not depend on the machine: nothing but IEEE 754
// additions, multiplications and divisions in a fixed order. (The C library picks variants with
// fused multiply-add at run time.) Each is exact to a few units in the last place.
// All take a double, a pair or eight of them side by side (lanes.h), with the same bits in each.
// Pure; safe from any thread. Golden data and erfc's coefficients:
// scripts/reference/portable_math.py.
#pragma once

#include <cstdint>
#include <limits>

#include "sampler/numeric/lanes.h"

namespace hpo::sampler {

HPO_PORTABLE uint64_t BitsOf(double x) { return __builtin_bit_cast(uint64_t, x); }
HPO_PORTABLE double OfBits(uint64_t bits) { return __builtin_bit_cast(double, bits); }
HPO_PORTABLE TwoBits BitsOf(const TwoLanes& x) { return (TwoBits)x; }
HPO_PORTABLE TwoLanes OfBits(const TwoBits& bits) { return (TwoLanes)bits; }

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr double kLeastNormal = std::numeric_limits<double>::min();
constexpr double kLn2High = 6.93147180369123816490e-01;  // 32 bits, so that multiples are exact
constexpr double kLn2Low = 1.90821492927058770002e-10;

// exp(x) as a power of two, in the low bits of `shifted`, times `factor`.
// Argument reduction by ln 2 and the Taylor series to the 13th power: its rest is below 2^-57.
template <typename T>
struct SplitExp {
  T shifted;
  T factor;
};

template <typename T>
HPO_PORTABLE SplitExp<T> SplitExpOf(const T& x) {
  constexpr double kRounder = 0x1.8p52;  // adding it rounds to a whole number, in its low bits
  const T shifted = x * 1.44269504088896340736 + kRounder;
  const T k = shifted - kRounder;
  const T r = (x - k * kLn2High) - k * kLn2Low;
  T sum = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  return {shifted, (sum * r) * r + r + 1.0};
}

// 0 below -707, where the result would lose digits; infinity from 709.78 on.
template <typename T>
HPO_PORTABLE T Exp(const T& x) {
  const SplitExp<T> split = SplitExpOf(x);
  // 2^(k - 1), as 2^1024 is no number.
  const T half_power = OfBits((BitsOf(split.shifted) + 1022) << 52);
  T result = (split.factor * half_power) * 2.0;
  result = x < -707.0 ? T{} : result;
  return x > 709.78 ? T{} + kUnbounded : result;
}

// The same for an x of at most 0.
template <typename T>
HPO_PORTABLE T ExpDown(const T& x) {
  const SplitExp<T> split = SplitExpOf(x);
  const T result = split.factor * OfBits((BitsOf(split.shifted) + 1023) << 52);
  return x < -707.0 ? T{} : result;
}

// -infinity at 0, NaN below.
// log(2^k (1 + f)) by the series of the inverse hyperbolic tangent of f / (2 + f).
template <typename T>
HPO_PORTABLE T Log(const T& x) {
  const auto subnormal = x < kLeastNormal;
  const T scaled = subnormal ? x * 0x1.0p54 : x;
  // Counted from the square root of a half, so that 1 + f is in [sqrt(1/2), sqrt(2)).
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  constexpr uint64_t kExponents = 0x7ff;
  const auto offset = BitsOf(scaled) - kSqrtHalf + (uint64_t{1022} << 52);
  const auto power = (offset >> 52) & kExponents;
  // A whole number below 2^52 as a double: its bits under the exponent of 2^52.
  const T whole = OfBits(power | 0x4330000000000000) - 0x1.0p52;
  const T k = whole - (subnormal ? T{} + 1076.0 : T{} + 1022.0);
  const T f = OfBits(BitsOf(scaled) - ((power - 1022) << 52)) - 1.0;
  const T s = f / (f + 2.0);
  const T z = s * s;
  T sum = z * (2.0 / 23.0) + 2.0 / 21.0;
  sum = sum * z + 2.0 / 19.0;
  sum = sum * z + 2.0 / 17.0;
  sum = sum * z + 2.0 / 15.0;
  sum = sum * z + 2.0 / 13.0;
  sum = sum * z + 2.0 / 11.0;
  sum = sum * z + 2.0 / 9.0;
  sum = sum * z + 2.0 / 7.0;
  sum = sum * z + 2.0 / 5.0;
  sum = sum * z + 2.0 / 3.0;
  sum = sum * z;
  const T half_square = f * f * 0.5;
  T result = k * kLn2High - ((half_square - (s * (half_square + sum) + k * kLn2Low)) - f);
  result = x == kUnbounded ? x : result;
  result = x >= 0.0 ? result : T{} + kNoNumber;
  return x == 0.0 ? T{} - kUnbounded : result;
}

// 1 - erf, accurate in relative terms down to 26.5, where Exp ends; 0 from there on.
// exp(-a^2) / (a + 1/2) times a polynomial in (a - 4) / (a + 4), a = |x|.
template <typename T>
HPO_PORTABLE T Erfc(const T& x) {
  const T a = x < 0.0 ? -x : x;
  const T u = (a - 4.0) / (a + 4.0);
  T sum = u * 4.6558724891162862e-10 + 7.8691418870960184e-10;
  sum = sum * u - 6.1734330219117646e-09;
  sum = sum * u - 8.1858898817834837e-09;
  sum = sum * u + 5.316927809297442e-08;
  sum = sum * u + 3.5576689002926517e-08;
  sum = sum * u - 4.1054695212802838e-07;
  sum = sum * u + 1.4900676901515666e-07;
  sum = sum * u + 2.8533022074478669e-06;
  sum = sum * u - 5.6125509378295888e-06;
  sum = sum * u - 1.2198873211218208e-05;
  sum = sum * u + 7.531154860009314e-05;
  sum = sum * u - 9.962857330545594e-05;
  sum = sum * u - 0.00037888685353191251;
  sum = sum * u + 0.0025159850338287446;
  sum = sum * u - 0.0080988669907275969;
  sum = sum * u + 0.018583757763277836;
  sum = sum * u - 0.033165182910155772;
  sum = sum * u + 0.046866417499547203;
  sum = sum * u - 0.050519533017932654;
  sum = sum * u + 0.034048527127334541;
  sum = sum * u + 0.0076898260513052364;
  sum = sum * u - 0.069810558420281152;
  sum = sum * u + 0.61649755931277628;
  const T tail = ExpDown(-(a * a)) * sum / (a + 0.5);
  const T result = a > 26.5 ? T{} : tail;
  return x < 0.0 ? 2.0 - result : result;
}

HPO_PORTABLE Lanes Exp(const Lanes& x) { return {Exp(x.a), Exp(x.b), Exp(x.c), Exp(x.d)}; }
HPO_PORTABLE Lanes ExpDown(const Lanes& x) {
  return {ExpDown(x.a), ExpDown(x.b), ExpDown(x.c), ExpDown(x.d)};
}
HPO_PORTABLE Lanes Log(const Lanes& x) { return {Log(x.a), Log(x.b), Log(x.c), Log(x.d)}; }
HPO_PORTABLE Lanes Erfc(const Lanes& x) { return {Erfc(x.a), Erfc(x.b), Erfc(x.c), Erfc(x.d)}; }

// log(1 + x) and exp(x) - 1 without loss of digits near 0, by what rounding 1 + x does to both.
inline double Log1p(double x) {
  const double sum = 1.0 + x;
  if (sum == 1.0) return x;
  if (sum == kUnbounded) return sum;
  return sum == 0.0 ? Log(sum) : Log(sum) * (x / (sum - 1.0));
}

inline double Expm1(double x) {
  const double power = Exp(x);
  if (power == 1.0) return x;
  if (power - 1.0 == -1.0) return -1.0;
  if (power == kUnbounded) return power;
  return (power - 1.0) * (x / Log(power));
}

}  // namespace hpo::sampler
