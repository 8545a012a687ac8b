// What one dry run's JSON document says of each GPU (python/dryrun, hpo_dryrun/__init__.py). Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "memory/frontier/frontier.h"

namespace hpo::cli {

struct GpuDocument {
  std::string name;  // as --gpu has it
  memory::FrontierGpu gpu;
  memory::FrontierMeasurement measured;
};

// The document in `output`, which other lines may stand before.
//   InvalidArgument  it has none: the last line of the output, which says why
absl::StatusOr<std::vector<GpuDocument>> ReadGpuDocuments(absl::string_view output);

// "fits", "tight", "does not fit", "not known".
std::string VerdictText(memory::FrontierVerdict verdict);

}  // namespace hpo::cli
