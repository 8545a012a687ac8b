// A size in memory. Never a bare integer: limits, peaks and estimates all pass through here.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo {

struct Bytes {
  int64_t count = 0;

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) {
    count += other.count;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    count -= other.count;
    return *this;
  }
};

constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes{a.count + b.count}; }
constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes{a.count - b.count}; }
constexpr Bytes operator*(Bytes a, int64_t factor) { return Bytes{a.count * factor}; }
constexpr Bytes operator*(int64_t factor, Bytes a) { return a * factor; }

constexpr Bytes KiB(int64_t n) { return Bytes{n << 10}; }
constexpr Bytes MiB(int64_t n) { return Bytes{n << 20}; }
constexpr Bytes GiB(int64_t n) { return Bytes{n << 30}; }

// `size` rounded up to a multiple of `unit` (unit > 0).
constexpr Bytes RoundUp(Bytes size, Bytes unit) {
  return Bytes{(size.count + unit.count - 1) / unit.count * unit.count};
}

// "17.50 GiB", "512 B": two decimals, the largest binary unit that keeps the number >= 1.
std::string FormatBytes(Bytes size);

// Reads "2GiB", "512 MiB", "8GB" (decimal), "1073741824". Case is ignored; a fraction is allowed.
//   InvalidArgument  no number, an unknown unit, a negative size, or more than 2^62 bytes
absl::StatusOr<Bytes> ParseBytes(absl::string_view text);

}  // namespace hpo
