// What the processes that use the emulated cards share: who holds how many bytes on which card.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace hpo::emulator {

// What one process holds on one card.
struct Holding {
  pid_t pid = 0;
  size_t bytes = 0;
};

// A table in a file, a row for each process and card. A row belongs to its process by a file lock,
// which the kernel gives back when the process ends, however it ends: its memory is free then.
// Safe for threads. Not for a process that forks and goes on using it in the child.
class SharedState {
 public:
  // An empty path: a table that this process alone sees. Ends the program where the file cannot be
  // used.
  explicit SharedState(const std::string& path);
  ~SharedState();
  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;

  // Adds `bytes` to what this process holds on `card`, unless all processes would hold more than
  // `limit` then; false if so.
  bool Take(int card, size_t bytes, size_t limit);
  void Give(int card, size_t bytes);

  // Whether this process has ever taken something of `card`.
  bool Holds(int card);

  // What all processes hold on `card`.
  size_t Used(int card);
  std::vector<Holding> Holdings(int card);

 private:
  struct Row;
  Row& OwnRow(int card);
  bool IsTaken(size_t index);

  std::mutex mutex_;
  int file_ = -1;
  Row* rows_ = nullptr;
  std::vector<size_t> own_;  // indices of this process's rows
};

}  // namespace hpo::emulator
