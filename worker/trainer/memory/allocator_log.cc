#include "worker/trainer/memory/allocator_log.h"

#include <array>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "worker/trainer/memory/counting_allocator.h"
#include "worker/trainer/memory/cuda_module.h"
#include "worker/trainer/memory/device_memory.h"

namespace hpo {
namespace {

constexpr absl::string_view kFirstLine = "hpo-trace 1";

// The counting allocator has no segments.
class CpuAllocatorLog final : public AllocatorLog, public AllocationWatcher {
 public:
  CpuAllocatorLog() { CountingAllocator::Install().SetWatcher(this); }
  ~CpuAllocatorLog() override { CountingAllocator::Install().SetWatcher(nullptr); }

  void NameOperations(OperationName name) override {
    const absl::MutexLock lock(&mutex_);
    name_ = name;
  }

  std::vector<AllocatorEvent> Held() override { return {}; }

  std::vector<AllocatorEvent> Take() override {
    const absl::MutexLock lock(&mutex_);
    return std::exchange(events_, {});
  }

  bool Admit(Bytes) override { return true; }

  void Allocated(const void* address, Bytes size) override {
    const absl::MutexLock lock(&mutex_);
    const int64_t block = numbers_.Add(reinterpret_cast<uint64_t>(address));
    Add({.kind = '+', .block = block, .bytes = size.count});
  }

  void Freed(const void* address, Bytes) override {
    const absl::MutexLock lock(&mutex_);
    const int64_t block = numbers_.Remove(reinterpret_cast<uint64_t>(address));
    if (block >= 0) Add({.kind = '-', .block = block});
  }

 private:
  void Add(AllocatorEvent event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (name_ != nullptr) event.operation = name_();
    events_.push_back(std::move(event));
  }

  absl::Mutex mutex_;
  OperationName name_ ABSL_GUARDED_BY(mutex_) = nullptr;
  BlockNumbers numbers_ ABSL_GUARDED_BY(mutex_);
  std::vector<AllocatorEvent> events_ ABSL_GUARDED_BY(mutex_);
};

std::string FormatLine(const AllocatorEvent& event) {
  const std::string kind(1, event.kind);
  switch (event.kind) {
    case '+':
      return absl::StrCat(kind, " ", event.block, " ", event.bytes,
                          event.stream != 0 ? absl::StrCat(" ", event.stream) : "");
    case '-':
      return absl::StrCat(kind, " ", event.block);
    default:
      return absl::StrCat(kind, " ", event.bytes);
  }
}

// The numbers that follow the kind, at least `least` of them.
bool ReadNumbers(absl::string_view text, size_t least, std::array<int64_t, 3>& numbers) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  if (words.size() < least || words.size() > numbers.size()) return false;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!absl::SimpleAtoi(words[i], &numbers[i]) || numbers[i] < 0) return false;
  }
  return true;
}

bool ParseLine(absl::string_view line, AllocatorEvent& event) {
  event.kind = line[0];
  std::array<int64_t, 3> numbers{};
  switch (event.kind) {
    case '+':
      if (!ReadNumbers(line.substr(1), 2, numbers)) return false;
      event = {.kind = '+', .block = numbers[0], .bytes = numbers[1], .stream = numbers[2]};
      return true;
    case '-':
      if (!ReadNumbers(line.substr(1), 1, numbers)) return false;
      event.block = numbers[0];
      return true;
    case 'S':
    case 's':
    case 'M':
    case 'm':
    case '!':
      if (!ReadNumbers(line.substr(1), 1, numbers)) return false;
      event.bytes = numbers[0];
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<AllocatorLog>> OpenAllocatorLog(const std::string& device) {
  HPO_ASSIGN_OR_RETURN(const std::optional<int> card, CardNumber(device));
  if (card.has_value()) return OpenCudaLog(*card);
  return std::make_unique<CpuAllocatorLog>();
}

std::string FormatTrace(const std::vector<AllocatorEvent>& events,
                        const std::vector<std::string>& about) {
  std::string text = absl::StrCat(kFirstLine, "\n");
  for (const std::string& line : about) absl::StrAppend(&text, "# ", line, "\n");
  for (const AllocatorEvent& event : events) absl::StrAppend(&text, FormatLine(event), "\n");
  return text;
}

absl::StatusOr<std::vector<AllocatorEvent>> ParseTrace(absl::string_view text) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (lines.front() != kFirstLine) {
    return absl::InvalidArgumentError(absl::StrCat("line 1: expected '", kFirstLine, "'"));
  }
  std::vector<AllocatorEvent> events;
  for (size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty() || lines[i][0] == '#') continue;
    AllocatorEvent event;
    if (!ParseLine(lines[i], event)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", i + 1, ": expected an event such as '+ 3 4096', got '", lines[i], "'"));
    }
    events.push_back(event);
  }
  return events;
}

}  // namespace hpo
