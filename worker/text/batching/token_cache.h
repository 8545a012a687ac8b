// Tokenized data on disk, so that a file is tokenized once and not by every trial.
//
// A file (worker/text/batching/token_file.h) for each data set, tokenizer and length, named by the
// digest of all that its tokens depend on: the tokenizer's own digest, the length, and the texts
// themselves. So nothing can be out of date, and two data files of the same texts share one. Files
// are written aside, synced and renamed; one that is torn or another's is passed over and written
// again. Those not used for the longest time go when the folder has more than its limit.
//
// Thread-safe, and safe between processes: any number may use one folder.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "worker/text/batching/encoded_dataset.h"

namespace hpo::text {

class TokenCache {
 public:
  // Keeps nothing.
  TokenCache() = default;
  // `folder` is made when it is first written to. limit: of all its files together.
  TokenCache(std::string folder, Bytes limit) : folder_(std::move(folder)), limit_(limit) {}

  // What EncodeDataset gives, to the bit, whether the cache has it or not. A folder that cannot be
  // written to costs a line in the log.
  //   InvalidArgument  as EncodeDataset
  absl::StatusOr<EncodedDataset> Encode(const Dataset& dataset, const Tokenizer& tokenizer,
                                        int64_t max_length) const;

 private:
  absl::Status Store(const std::string& key, const TokenRows& rows) const;
  // Removes files until `size` more fit.
  void MakeRoom(Bytes size) const;
  std::string PathOf(const std::string& key) const;

  std::string folder_;  // empty: nothing is kept
  Bytes limit_;
};

}  // namespace hpo::text
