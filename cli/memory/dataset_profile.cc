#include "cli/memory/dataset_profile.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "nlohmann/json.hpp"
#include "worker/text/data/json_rows.h"
#include "worker/text/data/readers.h"
#include "worker/text/files/text_encoding.h"
#include "worker/text/files/text_place.h"

namespace hpo::cli {
namespace {

constexpr size_t kNumLargest = 5;

int64_t NumWords(absl::string_view text) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
  return static_cast<int64_t>(words.size());
}

// Adds samples to a profile as they are read.
class Profiler {
 public:
  explicit Profiler(const ProfileOptions& options) : options_(options) {
    profile_.items_key = options.items_key;
    profile_.counted_words = options.tokenizer == nullptr;
  }

  //   InvalidArgument  the row has no text; names file and line
  absl::Status AddRow(const nlohmann::json& json, int64_t line, const std::string& origin) {
    const absl::StatusOr<std::string> content = text::RowText(json);
    if (!content.ok()) return text::DataError(origin, line, content.status().message());
    std::optional<std::string> pair;
    if (const nlohmann::json* const found = text::FindField(json, "pair");
        found != nullptr && found->is_string()) {
      pair = found->get<std::string>();
    }
    AddSample(line, NumItems(json), *content, pair);
    return absl::OkStatus();
  }

  void Warn(std::string warning) { profile_.warnings.push_back(std::move(warning)); }

  void AddSample(int64_t line, std::optional<int64_t> items, absl::string_view text,
                 const std::optional<std::string>& pair) {
    ++profile_.samples;
    const int64_t tokens = NumTokens(text, pair);
    ++profile_.tokens[tokens];
    lines_.push_back({.line = line, .items = items, .tokens = tokens});
  }

  //   InvalidArgument  no samples, or none with the items that were asked for
  absl::StatusOr<DatasetProfile> Finish() {
    if (profile_.samples == 0) return absl::InvalidArgumentError("expected samples, got none");
    if (!options_.items_key.empty() && !has_items_) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a list '", options_.items_key, "' in a sample, got none"));
    }
    for (const Line& line : lines_) {
      const int64_t items = has_items_ ? line.items.value_or(0) : 1;
      ++profile_.items[items];
      profile_.largest.push_back({.line = line.line, .size = has_items_ ? items : line.tokens});
    }
    std::stable_sort(
        profile_.largest.begin(), profile_.largest.end(),
        [](const LargestSample& a, const LargestSample& b) { return a.size > b.size; });
    profile_.largest.resize(std::min(profile_.largest.size(), kNumLargest));
    return std::move(profile_);
  }

 private:
  struct Line {
    int64_t line = 0;
    std::optional<int64_t> items;
    int64_t tokens = 0;
  };

  static bool IsList(const nlohmann::json& json) {
    return json.is_array() && !json.empty() && json.front().is_object();
  }

  // nullopt where the sample does not say.
  std::optional<int64_t> NumItems(const nlohmann::json& json) {
    for (auto member = json.begin(); profile_.items_key.empty() && member != json.end(); ++member) {
      if (IsList(member.value())) profile_.items_key = member.key();
    }
    const auto found = json.find(profile_.items_key);
    if (found == json.end() || !found->is_array()) return std::nullopt;
    has_items_ = true;
    return static_cast<int64_t>(found->size());
  }

  int64_t NumTokens(absl::string_view text, const std::optional<std::string>& pair) const {
    if (options_.tokenizer != nullptr) {
      std::optional<absl::string_view> second;
      if (pair.has_value()) second = *pair;
      return static_cast<int64_t>(
          options_.tokenizer->Encode(text, second, text::kNoTruncation).ids.size());
    }
    return NumWords(text) + (pair.has_value() ? NumWords(*pair) : 0);
  }

  const ProfileOptions& options_;
  DatasetProfile profile_;
  std::vector<Line> lines_;
  bool has_items_ = false;
};

absl::Status AddJsonRows(const std::string& path, Profiler& profiler) {
  HPO_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  HPO_ASSIGN_OR_RETURN(const text::DecodedText decoded, text::DecodeText(content, path));
  for (const std::string& warning : decoded.warnings) profiler.Warn(warning);
  text::JsonRowSplitter rows(decoded.text(), path);
  text::ReplacedCharacters replaced;
  text::JsonRowText row;
  while (true) {
    HPO_ASSIGN_OR_RETURN(const bool more, rows.Next(row));
    if (!more) break;
    HPO_ASSIGN_OR_RETURN(const nlohmann::json json, text::ParseJsonRow(row, path, replaced));
    HPO_RETURN_IF_ERROR(profiler.AddRow(json, row.begin.line, path));
  }
  if (replaced.count > 0) profiler.Warn(replaced.Warning());
  return absl::OkStatus();
}

absl::Status AddCsv(const std::string& path, Profiler& profiler) {
  HPO_ASSIGN_OR_RETURN(
      const text::DataFile file,
      text::ReadDataFile(path, {.kind = text::RowTargets::Kind::kNothing, .numbers = {}}));
  for (const std::string& warning : file.warnings) profiler.Warn(warning);
  for (const text::DataFileRow& row : file.rows) {
    profiler.AddSample(row.line, std::nullopt, row.text, row.pair);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DatasetProfile> ProfileDataset(const std::string& path,
                                              const ProfileOptions& options) {
  Profiler profiler(options);
  const absl::StatusOr<text::DataFormat> format = text::DataFormatOf(path);
  const bool csv = format.ok() && *format == text::DataFormat::kCsv;
  HPO_RETURN_IF_ERROR(csv ? AddCsv(path, profiler) : AddJsonRows(path, profiler));
  absl::StatusOr<DatasetProfile> profile = profiler.Finish();
  if (!profile.ok()) return Annotate(profile.status(), path);
  return profile;
}

int64_t LargestOf(const LengthHistogram& histogram) { return histogram.rbegin()->first; }

double MeanOf(const LengthHistogram& histogram) {
  double sum = 0.0;
  double samples = 0.0;
  for (const auto& [value, count] : histogram) {
    sum += static_cast<double>(value) * static_cast<double>(count);
    samples += static_cast<double>(count);
  }
  return sum / samples;
}

int64_t SamplesUpTo(const LengthHistogram& histogram, int64_t value) {
  int64_t samples = 0;
  for (auto entry = histogram.begin(); entry != histogram.upper_bound(value); ++entry) {
    samples += entry->second;
  }
  return samples;
}

int64_t PercentileOf(const LengthHistogram& histogram, double percent) {
  const auto samples = static_cast<double>(SamplesUpTo(histogram, LargestOf(histogram)));
  double seen = 0.0;
  for (const auto& [value, count] : histogram) {
    seen += static_cast<double>(count);
    if (seen * 100.0 >= percent * samples) return value;
  }
  return LargestOf(histogram);
}

double MeanBatchMaximum(const LengthHistogram& histogram, int64_t batch) {
  const int64_t samples = SamplesUpTo(histogram, LargestOf(histogram));
  batch = std::min(batch, samples);
  double mean = 0.0;
  double below = 0.0;  // probability that no sample of a batch is above the last value
  for (const auto& [value, count] : histogram) {
    const int64_t up_to = SamplesUpTo(histogram, value);
    double within = 1.0;
    for (int64_t i = 0; i < batch && within > 0.0; ++i) {
      within *=
          static_cast<double>(std::max<int64_t>(0, up_to - i)) / static_cast<double>(samples - i);
    }
    mean += static_cast<double>(value) * (within - below);
    below = within;
  }
  return mean;
}

}  // namespace hpo::cli
