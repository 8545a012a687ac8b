#include "common/base/bytes.h"

#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hpo {
namespace {

constexpr std::array<std::pair<const char*, double>, 9> kUnits = {{
    {"B", 1.0},
    {"KIB", 1024.0},
    {"MIB", 1048576.0},
    {"GIB", 1073741824.0},
    {"TIB", 1099511627776.0},
    {"KB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"TB", 1e12},
}};

absl::Status BadSize(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected a size such as 2GiB, 512MiB or 8GB, got '", text, "'"));
}

}  // namespace

std::string FormatBytes(Bytes size) {
  const double value = static_cast<double>(size.count);
  const double magnitude = std::abs(value);
  if (magnitude < 1024.0) return absl::StrCat(size.count, " B");
  const char* names[] = {"KiB", "MiB", "GiB", "TiB"};
  double scale = 1024.0;
  size_t index = 0;
  while (index + 1 < std::size(names) && magnitude >= scale * 1024.0) {
    scale *= 1024.0;
    ++index;
  }
  return absl::StrFormat("%.2f %s", value / scale, names[index]);
}

absl::StatusOr<Bytes> ParseBytes(absl::string_view text) {
  const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  const size_t unit_at = trimmed.find_first_not_of("0123456789.");
  double number = 0.0;
  if (!absl::SimpleAtod(trimmed.substr(0, unit_at), &number)) return BadSize(text);
  double factor = 1.0;
  if (unit_at != absl::string_view::npos) {
    const std::string unit =
        absl::AsciiStrToUpper(absl::StripAsciiWhitespace(trimmed.substr(unit_at)));
    factor = 0.0;
    for (const auto& [name, value] : kUnits) {
      if (unit == name) factor = value;
    }
    if (factor == 0.0) return BadSize(text);
  }
  const double bytes = number * factor;
  if (!(bytes >= 0.0 && bytes <= 4611686018427387904.0)) return BadSize(text);
  return Bytes{static_cast<int64_t>(std::llround(bytes))};
}

}  // namespace hpo
