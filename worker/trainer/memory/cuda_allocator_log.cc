// Tested by tests/integration/test_emulated_card.py.
// Part of the module hpo_cuda: the caching allocator's own trace. See cuda_module.h.
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <utility>

#include "worker/trainer/memory/allocator_log.h"

namespace hpo::trainer {
namespace {

using c10::CachingDeviceAllocator::BlockInfo;
using c10::CachingDeviceAllocator::SegmentInfo;
using c10::CachingDeviceAllocator::TraceEntry;

// Torch keeps a tracker for good, so it outlives every log. It is called under the allocator's
// lock: no call of torch in here.
class Tracker {
 public:
  static Tracker& Get() {
    static Tracker* const tracker = [] {
      auto* const made = new Tracker;
      c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(
          [made](const TraceEntry& entry) { made->Add(entry); });
      return made;
    }();
    return *tracker;
  }

  void Start(int device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    device_ = device;
    events_.clear();
    blocks_ = {};
    streams_.clear();
  }
  void Stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    device_ = -1;
    name_ = nullptr;
  }
  void NameOperations(AllocatorLog::OperationName name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    name_ = name;
  }
  // The events of `segments` of the logged device.
  std::vector<AllocatorEvent> Hold(const std::vector<SegmentInfo>& segments) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<AllocatorEvent> held;
    for (const SegmentInfo& segment : segments) {
      if (segment.device != device_) continue;
      held.push_back({.kind = segment.is_expandable ? 'M' : 'S',
                      .bytes = static_cast<int64_t>(segment.total_size)});
      size_t address = segment.address;
      for (const BlockInfo& block : segment.blocks) {
        if (block.active) {
          held.push_back({.kind = '+',
                          .block = blocks_.Add(address),
                          .bytes = static_cast<int64_t>(block.requested_size),
                          .stream = StreamOf(segment.stream)});
        }
        address += block.size;
      }
    }
    return held;
  }
  std::vector<AllocatorEvent> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(events_, {});
  }

 private:
  void Add(const TraceEntry& entry) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (entry.device_ != device_) return;
    const size_t before = events_.size();
    AddEvent(entry);
    if (name_ != nullptr && events_.size() > before) events_.back().operation = name_();
  }

  void AddEvent(const TraceEntry& entry) {
    const auto bytes = static_cast<int64_t>(entry.size_);
    switch (entry.action_) {
      case TraceEntry::ALLOC:
        events_.push_back({.kind = '+',
                           .block = blocks_.Add(entry.addr_),
                           .bytes = bytes,
                           .stream = StreamOf(entry.stream_)});
        return;
      case TraceEntry::FREE_COMPLETED: {
        const int64_t block = blocks_.Remove(entry.addr_);
        if (block >= 0) events_.push_back({.kind = '-', .block = block});
        return;
      }
      case TraceEntry::SEGMENT_ALLOC:
        events_.push_back({.kind = 'S', .bytes = bytes});
        return;
      case TraceEntry::SEGMENT_FREE:
        events_.push_back({.kind = 's', .bytes = bytes});
        return;
      case TraceEntry::SEGMENT_MAP:
        events_.push_back({.kind = 'M', .bytes = bytes});
        return;
      case TraceEntry::SEGMENT_UNMAP:
        events_.push_back({.kind = 'm', .bytes = bytes});
        return;
      case TraceEntry::OOM:
        events_.push_back({.kind = '!', .bytes = bytes});
        return;
      default:
        return;
    }
  }

  int64_t StreamOf(void* stream) {
    return streams_.try_emplace(stream, static_cast<int64_t>(streams_.size())).first->second;
  }

  std::mutex mutex_;
  int device_ = -1;  // that is logged
  AllocatorLog::OperationName name_ = nullptr;
  std::vector<AllocatorEvent> events_;
  BlockNumbers blocks_;
  std::map<void*, int64_t> streams_;
};

class CudaAllocatorLog final : public AllocatorLog {
 public:
  explicit CudaAllocatorLog(int device) { Tracker::Get().Start(device); }
  ~CudaAllocatorLog() override { Tracker::Get().Stop(); }

  void NameOperations(OperationName name) override { Tracker::Get().NameOperations(name); }

  std::vector<AllocatorEvent> Held() override {
    const auto snapshot = c10::cuda::CUDACachingAllocator::snapshot({0, 0}, false);
    return Tracker::Get().Hold(snapshot.segments);
  }

  std::vector<AllocatorEvent> Take() override {
    cudaDeviceSynchronize();
    return Tracker::Get().Take();
  }
};

}  // namespace
}  // namespace hpo::trainer

extern "C" __attribute__((visibility("default"))) hpo::trainer::AllocatorLog* hpo_open_cuda_log(
    int index, char*, size_t) {
  return new hpo::trainer::CudaAllocatorLog(index);
}
