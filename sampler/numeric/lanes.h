// Eight numbers side by side, as four pairs: every processor of 64 bits has registers for pairs, so
// that one code gives the same bits on all of them. Always inlined.
// Pure; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hpo::sampler {

#define HPO_PORTABLE __attribute__((always_inline)) inline

typedef double TwoLanes __attribute__((vector_size(16)));
typedef uint64_t TwoBits __attribute__((vector_size(16)));
typedef int64_t TwoMasks __attribute__((vector_size(16)));

constexpr size_t kNumLanes = 8;

template <typename T>
struct FourOf {
  T a, b, c, d;
};
using LaneMask = FourOf<TwoMasks>;

struct Lanes : FourOf<TwoLanes> {
  Lanes() = default;
  // Eight times the same. Implicit, as a number may stand on either side of an operator.
  HPO_PORTABLE Lanes(double x) : FourOf{{x, x}, {x, x}, {x, x}, {x, x}} {}
  HPO_PORTABLE Lanes(TwoLanes first, TwoLanes second, TwoLanes third, TwoLanes fourth)
      : FourOf{first, second, third, fourth} {}
};

HPO_PORTABLE Lanes LoadLanes(const double* from) {
  Lanes lanes;
  __builtin_memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}
HPO_PORTABLE void StoreLanes(const Lanes& lanes, double* to) {
  __builtin_memcpy(to, &lanes, sizeof(lanes));
}

HPO_PORTABLE Lanes operator+(const Lanes& x, const Lanes& y) {
  return {x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d};
}
HPO_PORTABLE Lanes operator-(const Lanes& x, const Lanes& y) {
  return {x.a - y.a, x.b - y.b, x.c - y.c, x.d - y.d};
}
HPO_PORTABLE Lanes operator*(const Lanes& x, const Lanes& y) {
  return {x.a * y.a, x.b * y.b, x.c * y.c, x.d * y.d};
}
HPO_PORTABLE Lanes operator/(const Lanes& x, const Lanes& y) {
  return {x.a / y.a, x.b / y.b, x.c / y.c, x.d / y.d};
}
HPO_PORTABLE Lanes operator-(const Lanes& x) { return {-x.a, -x.b, -x.c, -x.d}; }
HPO_PORTABLE Lanes& operator+=(Lanes& x, const Lanes& y) { return x = x + y; }
HPO_PORTABLE Lanes& operator-=(Lanes& x, const Lanes& y) { return x = x - y; }
HPO_PORTABLE Lanes& operator*=(Lanes& x, const Lanes& y) { return x = x * y; }

HPO_PORTABLE LaneMask operator<(const Lanes& x, const Lanes& y) {
  return {x.a < y.a, x.b < y.b, x.c < y.c, x.d < y.d};
}
HPO_PORTABLE LaneMask operator<=(const Lanes& x, const Lanes& y) {
  return {x.a <= y.a, x.b <= y.b, x.c <= y.c, x.d <= y.d};
}
// By lane the one or the other.
HPO_PORTABLE Lanes Where(const LaneMask& mask, const Lanes& x, const Lanes& y) {
  return {mask.a ? x.a : y.a, mask.b ? x.b : y.b, mask.c ? x.c : y.c, mask.d ? x.d : y.d};
}
// The second where they do not compare.
HPO_PORTABLE Lanes Larger(const Lanes& x, const Lanes& y) { return Where(y < x, x, y); }
HPO_PORTABLE Lanes Smaller(const Lanes& x, const Lanes& y) { return Where(x < y, x, y); }

HPO_PORTABLE double TotalOf(const Lanes& lanes) {
  const TwoLanes two = (lanes.a + lanes.c) + (lanes.b + lanes.d);
  return two[0] + two[1];
}
HPO_PORTABLE double Largest(const Lanes& lanes) {
  const TwoLanes first = lanes.a > lanes.c ? lanes.a : lanes.c;
  const TwoLanes second = lanes.b > lanes.d ? lanes.b : lanes.d;
  const TwoLanes two = first > second ? first : second;
  return two[0] > two[1] ? two[0] : two[1];
}
HPO_PORTABLE double Smallest(const Lanes& lanes) { return -Largest(-lanes); }

}  // namespace hpo::sampler
