// Messages from one rank to another, in order for each pair.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/nccl/rank_file.h"

namespace hpo::emulator::nccl {

// One rank's letters. A sender never waits: where RankFile::kNumLetters of its letters are unread,
// the oldest is dropped, and its value is unknown then.
class Letters {
 public:
  Letters(RankFile& file, int rank)
      : file_(file), rank_(rank), expected_(static_cast<size_t>(file.num_ranks())) {}

  // `operation.root` is the receiver.
  Outcome Send(const Operation& operation, const std::optional<std::string>& value);

  // The number of the next letter of the sender `operation.root`, for Receive.
  uint64_t Expect(const Operation& operation);
  // Takes a letter. Waits for it if it is small enough to have a value. Fails with kInvalidUsage if
  // it has another size or type.
  Outcome Receive(const Operation& operation, uint64_t number, std::optional<std::string>& value);

 private:
  Outcome Open(const Operation& operation, size_t index, std::optional<std::string>& value);

  RankFile& file_;
  const int rank_;
  size_t next_ = 0;                 // where the next letter goes
  std::vector<uint64_t> expected_;  // number of letters of each rank so far
};

}  // namespace hpo::emulator::nccl
