#include "common/models/workload.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/models/model_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {
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

nlohmann::json JsonForm<LengthHistogram>::Write(const LengthHistogram& histogram) {
  nlohmann::json json = nlohmann::json::array();
  for (const auto& [length, rows] : histogram) json.push_back({length, rows});
  return json;
}

absl::StatusOr<LengthHistogram> JsonForm<LengthHistogram>::Read(const nlohmann::json& json) {
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

nlohmann::json DataSetFactsToJson(const DataSetFacts& facts) { return ToJson(facts); }

absl::StatusOr<DataSetFacts> DataSetFactsFromJson(const nlohmann::json& json) {
  return FromJson<DataSetFacts>(json);
}

}  // namespace hpo
