// Learning curves of a published table (format hpo-table/1, bench/sampler/table.cc).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace hpo {

// Reads the curve of a row: its objective by step. Immutable; safe from any thread.
class CurveReader {
 public:
  // By the fidelity of `space`: one `column` with the values at steps 1, 2, ..., separated by
  // blanks, or `columns` of one value each, at the steps of `at`.
  //   InvalidArgument  none, not of that form, or of columns that `header` lacks
  static absl::StatusOr<CurveReader> Create(const nlohmann::json& space,
                                            const std::vector<std::string>& header);

  // At least one value; `cells` are as many as the header's.
  //   InvalidArgument  no value, or one that is no number
  absl::StatusOr<std::map<int64_t, double>> Read(const std::vector<std::string>& cells) const;

 private:
  std::vector<size_t> columns_;  // one where steps_ is empty
  std::vector<int64_t> steps_;   // ascending
};

}  // namespace hpo
