// `hpo memory dataset`. Codes, apart from its own: InvalidArgument where a word, size or file is
// wrong, NotFound where a file or model is not there.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "cli/client/session.h"
#include "memory/offline/offline_card.h"

namespace hpo::cli {

struct MemoryDatasetOptions {
  std::string file;
  std::string tokenizer;  // a model's folder; empty: words are counted
  std::string model;      // empty: the tokenizer's, else bert-base-uncased
  std::string items_key;  // empty: found by itself
  int64_t batch_size = 1;
  int64_t grad_accum = 1;
  int64_t passes = 1;
  int64_t max_length = 0;  // 0: the longest text's, else 128
  int64_t keep_up_to = 0;  // 0: 5 items, or the 99th percentile of the texts
  memory::CardOptions device;
};

// What the batches of a data file take, and what would save how much. Whether the largest batch
// fits as it is. Needs no server.
absl::StatusOr<bool> ShowMemoryDataset(Session& session, const MemoryDatasetOptions& options);

}  // namespace hpo::cli
