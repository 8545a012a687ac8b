// Collectives: all ranks of a communicator reach them in the same order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emulator/nccl/rank_file.h"

namespace hpo::emulator::nccl {

// What each rank gave, by rank; nothing where it is not known.
using Values = std::vector<std::optional<std::string>>;

// Whether ranks wait for each other in it: what a rank gives is small enough to be exchanged.
bool IsExchanged(const Operation& operation, int num_ranks);
// Bytes that a rank gives.
size_t BytesGiven(const Operation& operation, int num_ranks);

// One rank's view. A collective has two halves, so that one thread can take part for several ranks:
// Arrive for each of them, then Finish. Safe for threads of different ranks.
class Meetings {
 public:
  Meetings(RankFile& file, int rank) : file_(file), rank_(rank) {}

  // Gives this rank's value to the next collective, whose number it returns in `number`. Waits only
  // if other ranks are kNumMeetings behind. Fails with kInvalidUsage if the ranks that came before
  // do another operation.
  Outcome Arrive(const Operation& operation, const std::optional<std::string>& value,
                 uint64_t& number);

  // For an exchanged collective, waits for the ranks whose values this rank gets, and returns them.
  // Must follow each successful Arrive once.
  Outcome Finish(const Operation& operation, uint64_t number, Values& values);

 private:
  std::string NameOf(const Operation& operation, uint64_t number);
  Outcome AwaitPlace(const Operation& operation, uint64_t number);
  Outcome Await(const Operation& operation, uint64_t number);

  RankFile& file_;
  const int rank_;
};

}  // namespace hpo::emulator::nccl
