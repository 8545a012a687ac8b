#include "bench/sampler/table_curve.h"

#include <algorithm>
#include <functional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

struct Fidelity {
  std::vector<std::string> columns;
  std::vector<int64_t> steps;  // empty: the one column has all values
};

absl::StatusOr<int64_t> ParseStep(const nlohmann::json& json) {
  if (json.is_number_integer() && json.get<int64_t>() >= 1) return json.get<int64_t>();
  return absl::InvalidArgumentError(
      absl::StrCat("expected a step, 1 or more, got ", DescribeJson(json)));
}

absl::StatusOr<Fidelity> ParseFidelity(const nlohmann::json& space) {
  const auto found = space.find("fidelity");
  if (found == space.end() || found->is_null()) {
    return absl::InvalidArgumentError(
        "fidelity: expected the column or columns of a learning curve, got none");
  }
  Fidelity fidelity;
  JsonReader reader(*found, "fidelity");
  if (reader.Has("column")) {
    reader.Required("column", fidelity.columns.emplace_back());
    HPO_RETURN_IF_ERROR(reader.status());
    return fidelity;
  }
  reader.Required("columns", fidelity.columns);
  reader.RequiredWith("at", fidelity.steps, [](const nlohmann::json& json) {
    return ArrayFromJson<int64_t>(json, ParseStep);
  });
  HPO_RETURN_IF_ERROR(reader.status());
  const bool ascending = std::adjacent_find(fidelity.steps.begin(), fidelity.steps.end(),
                                            std::greater_equal<>()) == fidelity.steps.end();
  if (!ascending || fidelity.steps.empty() || fidelity.steps.size() != fidelity.columns.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "fidelity.at: expected one step for each of the columns, ascending, got ",
        fidelity.columns.size(), " columns and ", absl::StrJoin(fidelity.steps, ", ")));
  }
  return fidelity;
}

}  // namespace

absl::StatusOr<CurveReader> CurveReader::Create(const nlohmann::json& space,
                                                const std::vector<std::string>& header) {
  HPO_ASSIGN_OR_RETURN(Fidelity fidelity, ParseFidelity(space));
  CurveReader reader;
  reader.steps_ = std::move(fidelity.steps);
  for (const std::string& column : fidelity.columns) {
    const auto found = std::find(header.begin(), header.end(), column);
    if (found == header.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("fidelity: expected a column of the table, got ", column));
    }
    reader.columns_.push_back(static_cast<size_t>(found - header.begin()));
  }
  return reader;
}

absl::StatusOr<std::map<int64_t, double>> CurveReader::Read(
    const std::vector<std::string>& cells) const {
  std::vector<std::string> words;
  if (steps_.empty()) {
    words = absl::StrSplit(cells[columns_.front()], ' ', absl::SkipEmpty());
  } else {
    for (const size_t column : columns_) words.push_back(cells[column]);
  }
  if (words.empty()) return absl::InvalidArgumentError("expected a learning curve, got none");
  std::map<int64_t, double> curve;
  for (size_t i = 0; i < words.size(); ++i) {
    const int64_t step = steps_.empty() ? static_cast<int64_t>(i) + 1 : steps_[i];
    if (!absl::SimpleAtod(words[i], &curve[step])) {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected a number at step ", step, " of the learning curve, got '", words[i], "'"));
    }
  }
  return curve;
}

}  // namespace hpo
