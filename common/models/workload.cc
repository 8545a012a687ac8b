#include "common/models/workload.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

// [[length, rows], ...] by length.
nlohmann::json HistogramToJson(const LengthHistogram& histogram) {
  nlohmann::json json = nlohmann::json::array();
  for (const auto& [length, rows] : histogram) json.push_back({length, rows});
  return json;
}

absl::StatusOr<LengthHistogram> HistogramFromJson(const nlohmann::json& json) {
  const auto is_count = [](const nlohmann::json& number) {
    return number.is_number_integer() && number >= 0 && number <= INT64_MAX;
  };
  LengthHistogram histogram;
  const nlohmann::json pairs = json.is_array() ? json : nlohmann::json::array({json});
  for (const nlohmann::json& pair : pairs) {
    if (!pair.is_array() || pair.size() != 2 || !is_count(pair[0]) || !is_count(pair[1])) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected pairs [length, rows], got ", DescribeJson(pair)));
    }
    histogram[pair[0].get<int64_t>()] += pair[1].get<int64_t>();
  }
  return histogram;
}

absl::StatusOr<std::map<std::string, LengthHistogram>> LengthsFromJson(const nlohmann::json& json) {
  return MapFromJson(json, HistogramFromJson);
}

}  // namespace

int64_t MedianLength(const LengthHistogram& lengths) {
  int64_t rows = 0;
  for (const auto& [length, count] : lengths) rows += std::max<int64_t>(0, count);
  int64_t seen = 0;
  for (const auto& [length, count] : lengths) {
    seen += std::max<int64_t>(0, count);
    if (count > 0 && seen >= rows - seen) return length;
  }
  return 0;
}

int64_t LongestPadded(const LengthHistogram& lengths, int64_t max_length) {
  int64_t longest = lengths.empty() ? max_length : 1;
  for (const auto& [length, rows] : lengths) {
    if (rows > 0) longest = std::max(longest, length);
  }
  longest = std::min(longest, max_length);
  return (longest + kPaddingMultiple - 1) / kPaddingMultiple * kPaddingMultiple;
}

nlohmann::json DataSetFactsToJson(const DataSetFacts& facts) {
  nlohmann::json lengths = nlohmann::json::object();
  for (const auto& [digest, histogram] : facts.lengths) {
    lengths[digest] = HistogramToJson(histogram);
  }
  return {{"name", facts.name},     {"digest", facts.digest},           {"rows", facts.rows},
          {"labels", facts.labels}, {"multi_label", facts.multi_label}, {"pairs", facts.pairs},
          {"lengths", lengths}};
}

absl::StatusOr<DataSetFacts> DataSetFactsFromJson(const nlohmann::json& json) {
  DataSetFacts facts;
  JsonReader reader(json, "");
  reader.Required("name", facts.name);
  reader.Required("digest", facts.digest);
  reader.Required("rows", facts.rows);
  reader.Required("labels", facts.labels);
  reader.Optional("multi_label", facts.multi_label);
  reader.Optional("pairs", facts.pairs);
  reader.OptionalWith("lengths", facts.lengths, LengthsFromJson);
  HPO_RETURN_IF_ERROR(reader.status());
  return facts;
}

}  // namespace hpo
