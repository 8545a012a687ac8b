// Which rank of a program of several GPUs a printed line is of. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace hpo::command {

// The rank that a line begins with: "[rank1]: ...", as PyTorch prints exceptions of a rank, or
// "[default1]: ...", as torchrun prints lines with --tee; nullopt: there is none.
// Source: torch/distributed/distributed_c10d.py, _distributed_excepthook; torch/distributed/
// elastic/multiprocessing/tail_log.py.
std::optional<int64_t> RankOf(absl::string_view line);

// The line without that beginning.
absl::string_view WithoutRank(absl::string_view line);

// Reads, line by line, what a launcher says of the ranks that failed. torchrun's summary:
//   Root Cause (first observed failure):
//   [0]:
//     rank      : 1 (local_rank: 1)
//     exitcode  : -9 (pid: 4711)
// Source: torch/distributed/elastic/multiprocessing/errors/__init__.py, ChildFailedError.
// One thread.
class RankReader {
 public:
  void Take(absl::string_view line);

  // `line`, the last one that was taken, tells of memory that ran out.
  void NoteOom(absl::string_view line);
  void ForgetOom();

  // The rank that ran out of memory, by its line, else by the summary around or behind it; nullopt:
  // there was none, or the program has no ranks.
  std::optional<int64_t> oom_rank() const;

  // Whether SIGKILL ended the first rank that failed: the launcher itself ends with a status.
  bool killed() const { return killed_; }

 private:
  std::optional<int64_t> listed_;      // the rank that the summary is at
  std::optional<int64_t> root_cause_;  // the first that failed
  bool at_root_cause_ = false;
  bool killed_ = false;
  bool has_oom_ = false;
  std::optional<int64_t> oom_rank_;
};

}  // namespace hpo::command
