// Data files of JSON: lines, an array, or objects over several lines (json_rows.h).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/text/data/readers.h"

namespace hpo::text {

// As ReadDataFile, for content already in memory; `origin` is what errors begin with.
absl::StatusOr<DataFile> ParseJsonLines(absl::string_view content, const std::string& origin,
                                        const RowTargets& targets = {});

}  // namespace hpo::text
