#include "emulator/nccl/rank_file.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

namespace hpo::emulator::nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr off_t kInitializationByte = 1 << 20;  // the bytes before it are the ranks'
constexpr uint32_t kReady = 0x6870'6f01;
// How often a waiting rank looks whether the others are alive.
constexpr std::chrono::milliseconds kLook{50};

enum class Part : int32_t { kNone, kJoined, kLeft, kAborted };

struct flock LockOf(short type, off_t byte) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

// The next address from `place` on for `count` of T, and moves `place` behind them.
template <typename T>
T* Place(char* start, size_t& place, size_t count) {
  place = (place + alignof(T) - 1) / alignof(T) * alignof(T);
  T* const found = reinterpret_cast<T*>(start + place);
  place += count * sizeof(T);
  return found;
}

std::mutex g_open_mutex;

std::map<std::string, std::weak_ptr<RankFile>>& OpenFiles() {
  static auto* const files = new std::map<std::string, std::weak_ptr<RankFile>>;
  return *files;
}

std::string Join(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace

struct RankFile::Head {
  uint32_t ready;
  int32_t num_ranks;
  uint32_t num_changes;  // what waiting ranks sleep on
  int32_t failure;
  char failure_text[512];
  pthread_mutex_t mutex;
};

struct RankFile::Row {
  pid_t pid;
  Part part;
  int32_t gpu;
  uint64_t arrived;
};

struct RankFile::Layout {
  Layout(char* first, int num_ranks) : start(first) {
    const auto ranks = static_cast<size_t>(num_ranks);
    head = Place<Head>(start, bytes, 1);
    rows = Place<Row>(start, bytes, ranks);
    sent = Place<uint64_t>(start, bytes, ranks * ranks);
    meetings = Place<Meeting>(start, bytes, kNumMeetings);
    letters = Place<Letter>(start, bytes, ranks * kNumLetters);
    meeting_values = Place<Value>(start, bytes, ranks * kNumMeetings);
    letter_values = Place<Value>(start, bytes, ranks * kNumLetters);
  }

  char* start;
  size_t bytes = 0;
  Head* head;
  Row* rows;
  uint64_t* sent;
  Meeting* meetings;
  Letter* letters;
  Value* meeting_values;
  Value* letter_values;
};

RankFile::RankFile(const RankFileOptions& options) : options_(options) {}

Outcome RankFile::Open(const RankFileOptions& options, std::shared_ptr<RankFile>& file) {
  const std::lock_guard<std::mutex> lock(g_open_mutex);
  const std::string key = options.path.empty() ? options.name : options.path;
  std::weak_ptr<RankFile>& known = OpenFiles()[key];
  file = known.lock();
  if (file == nullptr) {
    file.reset(new RankFile(options));
    if (Outcome outcome = file->Map(); !outcome.ok()) return outcome;
    known = file;
  }
  if (file->layout_->head->num_ranks == options.num_ranks) return {};
  return {kInvalidArgument, "communicator " + options.name + ": expected " +
                                std::to_string(file->layout_->head->num_ranks) +
                                " ranks as other ranks do, got " +
                                std::to_string(options.num_ranks)};
}

Outcome RankFile::Map() {
  file_ = options_.path.empty() ? memfd_create("hpo_emulated_nccl", MFD_CLOEXEC)
                                : open(options_.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const size_t bytes = Layout(nullptr, options_.num_ranks).bytes;
  struct flock lock = LockOf(F_WRLCK, kInitializationByte);
  if (file_ < 0 || fcntl(file_, F_SETLKW, &lock) != 0 ||
      ftruncate(file_, static_cast<off_t>(bytes)) != 0) {
    return {kSystemError, "file '" + options_.path + "': " + std::strerror(errno)};
  }
  void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (start == MAP_FAILED) return {kSystemError, std::string("mmap: ") + std::strerror(errno)};
  layout_ = std::make_unique<Layout>(static_cast<char*>(start), options_.num_ranks);
  Head& head = *layout_->head;
  if (head.ready != kReady) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&head.mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    head.num_ranks = options_.num_ranks;
    head.ready = kReady;
  }
  struct flock unlock = LockOf(F_UNLCK, kInitializationByte);
  fcntl(file_, F_SETLK, &unlock);
  return {};
}

RankFile::~RankFile() {
  if (layout_ != nullptr) munmap(layout_->start, layout_->bytes);
  if (file_ >= 0) close(file_);
}

// A process that ended inside left what it was writing: at worst a rank that never arrives, which
// is seen to have ended.
RankFile::Guard::Guard(RankFile& file) : file_(file) {
  pthread_mutex_t& mutex = file_.layout_->head->mutex;
  if (pthread_mutex_lock(&mutex) == EOWNERDEAD) pthread_mutex_consistent(&mutex);
}

RankFile::Guard::~Guard() { pthread_mutex_unlock(&file_.layout_->head->mutex); }

Outcome RankFile::Join(int rank, int gpu) {
  const Guard guard(*this);
  Row& row = layout_->rows[rank];
  struct flock lock = LockOf(F_WRLCK, rank);
  if (row.part != Part::kNone || fcntl(file_, F_SETLK, &lock) != 0) {
    return {kInvalidUsage, "communicator " + options_.name + ": rank " + std::to_string(rank) +
                               " has joined already, in process " + std::to_string(row.pid)};
  }
  for (int other = 0; other < num_ranks(); ++other) {
    if (layout_->rows[other].part != Part::kJoined || layout_->rows[other].gpu != gpu) continue;
    const Outcome duplicate{kInvalidUsage, "Duplicate GPU detected : rank " + std::to_string(rank) +
                                               " and rank " + std::to_string(other) +
                                               " both on GPU " + std::to_string(gpu)};
    Fail(duplicate);
    return duplicate;
  }
  row.pid = getpid();
  row.part = Part::kJoined;
  row.gpu = gpu;
  const bool all = std::all_of(layout_->rows, layout_->rows + num_ranks(),
                               [](const Row& other) { return other.part != Part::kNone; });
  if (all && !options_.path.empty()) unlink(options_.path.c_str());  // nobody else opens it
  Changed();
  return {};
}

Outcome RankFile::AwaitRanks(int rank) {
  const Guard guard(*this);
  const std::string what = "the creation of communicator " + options_.name +
                           (options_.path.empty() ? " (without HPO_EMULATED_STATE, ranks of other "
                                                    "processes are not seen)"
                                                  : "");
  return Await(rank, what, [this] {
    std::vector<int> missing;
    for (int other = 0; other < num_ranks(); ++other) {
      if (layout_->rows[other].part == Part::kNone) missing.push_back(other);
    }
    return missing;
  });
}

void RankFile::Leave(int rank, bool aborted) {
  const Guard guard(*this);
  layout_->rows[rank].part = aborted ? Part::kAborted : Part::kLeft;
  Changed();
}

bool RankFile::IsAlive(int rank) {
  const Row& row = layout_->rows[rank];
  if (row.part == Part::kNone) return true;  // it may still come
  if (row.part != Part::kJoined) return false;
  if (row.pid == getpid()) return true;
  struct flock lock = LockOf(F_WRLCK, rank);
  return fcntl(file_, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

std::string RankFile::DescribeRank(int rank) {
  const Row& row = layout_->rows[rank];
  const std::string text =
      "rank " + std::to_string(rank) + " (process " + std::to_string(row.pid) + ")";
  if (row.part == Part::kAborted) return text + " has aborted the communicator";
  if (row.part == Part::kLeft) return text + " has destroyed the communicator";
  return text + " has ended";
}

Outcome RankFile::FailureOf(const std::vector<int>& missing, const std::string& what) {
  if (Outcome failed = failure(); !failed.ok()) return failed;
  for (const int rank : missing) {
    if (IsAlive(rank)) continue;
    const Outcome outcome{kRemoteError, what + ": " + DescribeRank(rank)};
    Fail(outcome);
    return outcome;
  }
  return {};
}

Outcome RankFile::Await(int rank, const std::string& what,
                        const std::function<std::vector<int>()>& missing) {
  Head& head = *layout_->head;
  const auto deadline = Clock::now() + options_.patience;
  for (;;) {
    const std::vector<int> ranks = missing();
    if (ranks.empty()) return {};
    if (Outcome outcome = FailureOf(ranks, what); !outcome.ok()) return outcome;
    if (Clock::now() >= deadline) {
      const Outcome outcome{kRemoteError, what + ": rank " + std::to_string(rank) + " waited " +
                                              std::to_string(options_.patience.count()) +
                                              " s for " + nccl::Join(ranks)};
      Fail(outcome);
      return outcome;
    }
    const uint32_t seen = head.num_changes;
    pthread_mutex_unlock(&head.mutex);
    const struct timespec look = {.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kLook).count()};
    syscall(SYS_futex, &head.num_changes, FUTEX_WAIT, seen, &look, nullptr, 0);
    if (pthread_mutex_lock(&head.mutex) == EOWNERDEAD) pthread_mutex_consistent(&head.mutex);
  }
}

void RankFile::Changed() {
  ++layout_->head->num_changes;
  syscall(SYS_futex, &layout_->head->num_changes, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void RankFile::Fail(const Outcome& outcome) {
  Head& head = *layout_->head;
  if (head.failure != kSuccess) return;
  head.failure = outcome.code;
  const size_t length = std::min(outcome.text.size(), sizeof head.failure_text - 1);
  std::memcpy(head.failure_text, outcome.text.data(), length);
  Changed();
}

Outcome RankFile::failure() {
  const Head& head = *layout_->head;
  return {head.failure, head.failure == kSuccess ? "" : head.failure_text};
}

uint64_t& RankFile::arrived(int rank) { return layout_->rows[rank].arrived; }

Meeting& RankFile::meeting(uint64_t number) { return layout_->meetings[number % kNumMeetings]; }

Value& RankFile::meeting_value(uint64_t number, int rank) {
  return layout_->meeting_values[number % kNumMeetings * static_cast<size_t>(num_ranks()) +
                                 static_cast<size_t>(rank)];
}

uint64_t& RankFile::sent(int from, int to) { return layout_->sent[from * num_ranks() + to]; }

Letter& RankFile::letter(int from, size_t index) {
  return layout_->letters[static_cast<size_t>(from) * kNumLetters + index];
}

Value& RankFile::letter_value(int from, size_t index) {
  return layout_->letter_values[static_cast<size_t>(from) * kNumLetters + index];
}

}  // namespace hpo::emulator::nccl
