// `hpo memory estimate` of a study: what its server says. Codes, apart from the server's own:
// InvalidArgument where a word or size is wrong.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/client/session.h"

namespace hpo::cli {

struct MemoryOptions {
  std::vector<std::string> params;
  std::string worker;
  std::string limit;  // a size, or empty
};

// Whether it fits.
absl::StatusOr<bool> EstimateMemory(Session& session, const MemoryOptions& options);

// `before` as it is given; after: the same with the words of `compare` in place of its own. Whether
// what comes after fits.
absl::StatusOr<bool> CompareMemory(Session& session, const MemoryOptions& before,
                                   const std::vector<std::string>& compare);

}  // namespace hpo::cli
