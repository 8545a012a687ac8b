// The file that the ranks of one communicator share: who has joined, who is alive, and the memory
// that meetings and letters lie in.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/nccl/types.h"

namespace hpo::emulator::nccl {

// Values up to this size are exchanged.
constexpr size_t kLongestValue = size_t{64} << 10;

// Bytes that are known, or not.
struct Value {
  uint32_t is_known;
  uint32_t num_bytes;
  char bytes[kLongestValue];
};

// A collective that some ranks have reached.
struct Meeting {
  uint64_t number;  // counted from 1; 0: nobody's
  Operation operation;
  int32_t num_arrived;
  int32_t num_done;
  int32_t first;  // the rank that came first
};

// A message from one rank to another.
struct Letter {
  uint64_t number;  // counted from 1 for each pair of ranks; 0: none
  int32_t to;
  Operation operation;
};

// How long ranks wait, and where they meet.
struct RankFileOptions {
  std::string path;  // empty: memory of this process alone
  std::string name;  // of the communicator, for messages
  int num_ranks = 1;
  std::chrono::seconds patience{600};
};

// Safe for threads and processes: everything that is shared is read and written under a Guard. A
// rank belongs to its process by a file lock, which the kernel releases when the process ends.
class RankFile {
 public:
  static constexpr size_t kNumMeetings = 1024;
  static constexpr size_t kNumLetters = 128;

  // The file's only instance in this process. Fails with kSystemError where the file cannot be
  // used, and with kInvalidArgument if other ranks opened it for another number of ranks.
  static Outcome Open(const RankFileOptions& options, std::shared_ptr<RankFile>& file);
  ~RankFile();
  RankFile(const RankFile&) = delete;
  RankFile& operator=(const RankFile&) = delete;

  // Holds the lock between ranks.
  class Guard {
   public:
    explicit Guard(RankFile& file);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    RankFile& file_;
  };

  const RankFileOptions& options() const { return options_; }
  int num_ranks() const { return options_.num_ranks; }

  // Fails with kInvalidUsage if the rank has been taken, or another rank is on the same GPU.
  Outcome Join(int rank, int gpu);
  // Waits until all ranks have joined.
  Outcome AwaitRanks(int rank);
  // The rank takes part no more. `aborted`: those who wait for it fail at once.
  void Leave(int rank, bool aborted);

  // Waits, under the caller's guard, until `missing` names no rank. Fails with kRemoteError if a
  // missing rank has ended or left or the time is over, and with what Fail was given. `what` is
  // waited for.
  Outcome Await(int rank, const std::string& what,
                const std::function<std::vector<int>()>& missing);
  // Under a guard: wakes those who wait.
  void Changed();
  // Under a guard: from now on every wait fails, for every rank; the first failure counts.
  void Fail(const Outcome& outcome);
  // What Fail was given, success if nothing.
  Outcome failure();

  // Under a guard. `arrived` of a rank: the number of collectives that it has reached.
  uint64_t& arrived(int rank);
  Meeting& meeting(uint64_t number);
  Value& meeting_value(uint64_t number, int rank);
  // Number of letters that `from` has sent to `to`.
  uint64_t& sent(int from, int to);
  Letter& letter(int from, size_t index);
  Value& letter_value(int from, size_t index);

 private:
  struct Head;
  struct Row;
  struct Layout;

  explicit RankFile(const RankFileOptions& options);
  Outcome Map();
  bool IsAlive(int rank);
  std::string DescribeRank(int rank);
  Outcome FailureOf(const std::vector<int>& missing, const std::string& what);

  const RankFileOptions options_;
  int file_ = -1;
  std::unique_ptr<Layout> layout_;  // where the parts of the mapping begin
};

}  // namespace hpo::emulator::nccl
