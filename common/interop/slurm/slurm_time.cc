#include "common/interop/slurm/slurm_time.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"

namespace hpo {
namespace {

bool ReadDigits(absl::string_view text, int64_t& number) {
  return std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(text, &number);
}

}  // namespace

absl::StatusOr<absl::Duration> ParseSlurmTime(absl::string_view text) {
  const std::vector<absl::string_view> halves = absl::StrSplit(text, absl::MaxSplits('-', 1));
  const std::vector<absl::string_view> parts = absl::StrSplit(halves.back(), ':');
  bool is_time = parts.size() == 2 || parts.size() == 3;
  int64_t days = 0;
  if (halves.size() == 2) is_time = is_time && ReadDigits(halves[0], days);
  int64_t seconds = 0;
  for (const absl::string_view part : parts) {
    int64_t number = 0;
    is_time = is_time && ReadDigits(part, number);
    seconds = 60 * seconds + number;
  }
  if (is_time) return absl::Hours(24) * days + absl::Seconds(seconds);
  return Unexpected("Slurm", "a time such as 2-03:04:05 or 4:05", absl::StrCat("'", text, "'"));
}

}  // namespace hpo
