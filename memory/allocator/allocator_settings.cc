#include "memory/allocator/allocator_settings.h"

#include <cstdint>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/bytes.h"
#include "common/base/status.h"

namespace hpo::memory {
namespace {

constexpr char kExpandable[] = "expandable_segments";
constexpr char kMaxSplit[] = "max_split_size_mb";
constexpr char kCollection[] = "garbage_collection_threshold";
constexpr char kRoundup[] = "roundup_power2_divisions";
constexpr int64_t kMebibyte = MiB(1).count;

absl::Status UnexpectedOption(absl::string_view option, absl::string_view expected,
                              absl::string_view got) {
  return Unexpected(option, expected, absl::StrCat("'", got, "'"));
}

absl::Status Set(absl::string_view option, absl::string_view value, AllocatorOptions& options) {
  if (option == kExpandable) {
    if (value != "True" && value != "False") {
      return UnexpectedOption(option, "True or False", value);
    }
    options.expandable_segments = value == "True";
    return absl::OkStatus();
  }
  if (option == kMaxSplit) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(value, &size) || size <= 20 ||
        size > std::numeric_limits<int64_t>::max() / kMebibyte) {
      return UnexpectedOption(option, "a whole number of MiB above 20", value);
    }
    options.max_split_bytes = size * kMebibyte;
    return absl::OkStatus();
  }
  if (option == kCollection) {
    double threshold = 0.0;
    if (!absl::SimpleAtod(value, &threshold) || !(threshold > 0.0 && threshold < 1.0)) {
      return UnexpectedOption(option, "a number above 0 and below 1", value);
    }
    options.garbage_collection_threshold = threshold;
    return absl::OkStatus();
  }
  if (option == kRoundup) {
    if (!absl::SimpleAtoi(value, &options.roundup_power2_divisions) ||
        !InvalidOption(options).empty()) {
      return UnexpectedOption(option, "0 or a power of two", value);
    }
    return absl::OkStatus();
  }
  return UnexpectedOption(
      "option", absl::StrCat(kExpandable, ", ", kMaxSplit, ", ", kCollection, " or ", kRoundup),
      option);
}

}  // namespace

absl::StatusOr<AllocatorOptions> ParseAllocatorSettings(absl::string_view text) {
  AllocatorOptions options;
  if (text.empty()) return options;
  std::set<absl::string_view> seen;
  for (const absl::string_view setting : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(setting, absl::MaxSplits(':', 1));
    const absl::string_view option = absl::StripAsciiWhitespace(parts.first);
    if (option.empty() || setting.find(':') == absl::string_view::npos) {
      return UnexpectedOption("setting", "OPTION:VALUE", setting);
    }
    if (!seen.insert(option).second) return UnexpectedOption(option, "it once", text);
    HPO_RETURN_IF_ERROR(Set(option, absl::StripAsciiWhitespace(parts.second), options));
  }
  return options;
}

std::string FormatAllocatorSettings(const AllocatorOptions& options) {
  std::string text = absl::StrCat(kExpandable, ":", options.expandable_segments ? "True" : "False");
  if (options.max_split_bytes != AllocatorOptions::kUnlimited) {
    absl::StrAppend(&text, ",", kMaxSplit, ":", options.max_split_bytes / kMebibyte);
  }
  if (options.garbage_collection_threshold > 0.0) {
    absl::StrAppend(&text, ",", kCollection, ":", options.garbage_collection_threshold);
  }
  if (options.roundup_power2_divisions > 1) {
    absl::StrAppend(&text, ",", kRoundup, ":", options.roundup_power2_divisions);
  }
  return text;
}

}  // namespace hpo::memory
