// `hpo memory fit`. Codes, apart from its own: InvalidArgument where a word, size or file is wrong,
// NotFound where a file or model is not there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/client/session.h"
#include "memory/offline/offline_card.h"

namespace hpo::cli {

struct MemoryFitOptions {
  std::string model;  // a name of the catalogue, or a config.json
  std::vector<std::string> params;
  std::vector<int64_t> lengths;
  memory::CardOptions device;
  std::string task;  // of the model; empty: text-classification
  int64_t grad_accum = 1;
};

// The largest micro-batch for each length and card, of a configuration that also has `params`.
// Whether any cell has one. Needs no server.
absl::StatusOr<bool> ShowMemoryFit(Session& session, const MemoryFitOptions& options);

}  // namespace hpo::cli
