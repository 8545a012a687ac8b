#include "emulator/shared_state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "emulator/report.h"

namespace hpo::emulator {
namespace {

constexpr size_t kNumRows = 256;

// Locks, blocks on (`wait`) or unlocks one byte of the file. Bytes 0 to kNumRows - 1 are the rows',
// the next guards the table.
bool Lock(int file, short type, size_t byte, bool wait) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  int done = 0;
  do {
    done = fcntl(file, wait ? F_SETLKW : F_SETLK, &lock);
  } while (done != 0 && errno == EINTR);
  return done == 0;
}

// Between processes; threads of one are kept apart by a mutex.
class TableLock {
 public:
  explicit TableLock(int file) : file_(file) { Lock(file_, F_WRLCK, kNumRows, /*wait=*/true); }
  ~TableLock() { Lock(file_, F_UNLCK, kNumRows, /*wait=*/false); }
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;

 private:
  const int file_;
};

}  // namespace

struct SharedState::Row {
  pid_t pid;  // 0: nobody's
  int32_t card;
  uint64_t bytes;
};

SharedState::SharedState(const std::string& path) {
  file_ = path.empty() ? memfd_create("hpo_emulated_card", MFD_CLOEXEC)
                       : open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  constexpr size_t kBytes = kNumRows * sizeof(Row);
  if (file_ < 0 || ftruncate(file_, kBytes) != 0) {
    EndWith("state file '" + path + "': " + std::strerror(errno));
  }
  void* const table = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (table == MAP_FAILED) EndWith("state file '" + path + "': " + std::strerror(errno));
  rows_ = static_cast<Row*>(table);
}

SharedState::~SharedState() {
  for (const size_t index : own_) rows_[index] = {};
  munmap(rows_, kNumRows * sizeof(Row));
  close(file_);
}

bool SharedState::IsTaken(size_t index) {
  if (rows_[index].pid == 0) return false;
  if (std::find(own_.begin(), own_.end(), index) != own_.end()) return true;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(index);
  lock.l_len = 1;
  if (fcntl(file_, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) return true;
  rows_[index] = {};  // its process has ended
  return false;
}

SharedState::Row& SharedState::OwnRow(int card) {
  for (const size_t index : own_) {
    if (rows_[index].card == card) return rows_[index];
  }
  for (size_t index = 0; index < kNumRows; ++index) {
    if (IsTaken(index) || !Lock(file_, F_WRLCK, index, /*wait=*/false)) continue;
    rows_[index] = {.pid = getpid(), .card = card, .bytes = 0};
    own_.push_back(index);
    return rows_[index];
  }
  EndWith("more than " + std::to_string(kNumRows) + " processes on the emulated cards");
}

bool SharedState::Take(int card, size_t bytes, size_t limit) {
  const std::lock_guard<std::mutex> threads(mutex_);
  const TableLock processes(file_);
  size_t used = 0;
  for (size_t index = 0; index < kNumRows; ++index) {
    if (IsTaken(index) && rows_[index].card == card) used += rows_[index].bytes;
  }
  if (used > limit || bytes > limit - used) return false;
  OwnRow(card).bytes += bytes;
  return true;
}

void SharedState::Give(int card, size_t bytes) {
  const std::lock_guard<std::mutex> threads(mutex_);
  const TableLock processes(file_);
  OwnRow(card).bytes -= bytes;
}

bool SharedState::Holds(int card) {
  const std::lock_guard<std::mutex> threads(mutex_);
  return std::any_of(own_.begin(), own_.end(),
                     [&](size_t index) { return rows_[index].card == card; });
}

size_t SharedState::Used(int card) {
  size_t used = 0;
  for (const Holding& holding : Holdings(card)) used += holding.bytes;
  return used;
}

std::vector<Holding> SharedState::Holdings(int card) {
  const std::lock_guard<std::mutex> threads(mutex_);
  const TableLock processes(file_);
  std::vector<Holding> found;
  for (size_t index = 0; index < kNumRows; ++index) {
    if (!IsTaken(index) || rows_[index].card != card) continue;
    found.push_back({.pid = rows_[index].pid, .bytes = rows_[index].bytes});
  }
  return found;
}

}  // namespace hpo::emulator
