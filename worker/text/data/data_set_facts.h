// What a worker tells the server about one data file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/task_kind.h"
#include "common/models/workload.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo::text {

// Reads the file at `path`, to be advertised as `name`: digest, rows, labels, and for each
// tokenizer the histogram of row lengths (special tokens included, before truncation). Tokenizers
// with equal digests are run once. A task without labels needs none in the file. What is said about
// the file without being an error is added to `warnings`.
//   NotFound, Unavailable, InvalidArgument  see ReadDataFile, ReadAspectFile
absl::StatusOr<DataSetFacts> MeasureDataSet(const std::string& path, const std::string& name,
                                            std::span<const Tokenizer* const> tokenizers,
                                            TaskKind task = TaskKind::kTextClassification,
                                            std::vector<std::string>* warnings = nullptr);

}  // namespace hpo::text
