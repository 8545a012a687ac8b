#include "memory/replay/recorded_events.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "memory/replay/line_words.h"

namespace hpo::memory {
namespace {

using Kind = RecordedEvent::Kind;

constexpr std::string_view kFirstLine = "hpo-allocation-events 1";
constexpr size_t kMaxPools = std::numeric_limits<uint16_t>::max();

// Every Read... returns whether the line is as described; what was expected stands in expected_
// else.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::variant<std::vector<RecordedDevice>, std::string> Read() {
    if (!ReadFirst()) return Complaint();
    while (!rest_.empty()) {
      std::string_view values = NextLine();
      const std::string_view item = TakeUntil(' ', values);
      if (item == "end") {
        if (!ReadEnd(values)) return Complaint();
        return std::move(devices_);
      }
      if (!ReadItem(item, values)) return Complaint();
    }
    expected_ = "'end NUMBER' at the end of the recording, which is cut off";
    return Complaint();
  }

 private:
  std::string_view NextLine() {
    ++num_lines_;
    return line_ = TakeUntil('\n', rest_);
  }

  std::string Complaint() const {
    return "line " + std::to_string(num_lines_) + ": expected " + expected_ + ", got '" +
           std::string(line_.substr(0, 80)) + "'";
  }

  bool ReadFirst() {
    expected_ = "'" + std::string(kFirstLine) + "'";
    return NextLine() == kFirstLine;
  }

  bool ReadEnd(std::string_view values) {
    expected_ = "'end " + std::to_string(num_lines_ - 1) + "'";
    int64_t lines = 0;
    return TakeNumber(values, lines) && lines == num_lines_ - 1;
  }

  bool ReadItem(std::string_view item, std::string_view values) {
    if (item == "settings" || item == "lost" || item == "site") return true;
    if (item == "device") return ReadDevice(values);
    if (devices_.empty()) {
      expected_ = "'device NUMBER' before the first event";
      return false;
    }
    RecordedDevice& device = devices_.back();
    if (item == "gpu") {
      expected_ = "'gpu CAPABILITY MULTIPROCESSORS THREADS NUMBER'";
      return TakeNumber(values, device.gpu.capability) &&
             TakeNumber(values, device.gpu.multiprocessors) &&
             TakeNumber(values, device.gpu.threads_per_multiprocessor) &&
             TakeNumber(values, device.num_sums_missing) &&
             device.gpu.multiprocessors < kLargestCount &&
             device.gpu.threads_per_multiprocessor < kLargestCount;
    }
    if (item == "s") return ReadSharedSum(values, device);
    if (item == "w") {
      device.workspaces.push_back(device.events.size());
      return true;
    }
    if (item == "fraction") {
      expected_ = "'fraction NUMBER'";
      return TakeFraction(values, device.memory_fraction);
    }
    return item == "pool" ? ReadPool(values, device) : ReadEvent(item, values, device);
  }

  bool ReadDevice(std::string_view values) {
    expected_ = "'device NUMBER'";
    devices_.emplace_back();
    is_held_.clear();
    return TakeNumber(values, devices_.back().number);
  }

  bool ReadPool(std::string_view values, RecordedDevice& device) {
    std::vector<bool>& pools = device.private_pools;
    expected_ = "'pool " + std::to_string(pools.size()) + "' and shared or private";
    int64_t pool = 0;
    if (!TakeNumber(values, pool) || static_cast<size_t>(pool) != pools.size()) return false;
    if (pools.size() == kMaxPools || (values != "shared" && values != "private")) return false;
    pools.push_back(values == "private");
    return true;
  }

  bool ReadSharedSum(std::string_view values, RecordedDevice& device) {
    expected_ = "'s BLOCKS GROUPS THREADS', none of them 0";
    SharedSum sum{.event = device.events.size()};
    device.shared_sums.push_back(sum);
    for (int64_t SharedSum::*const field :
         {&SharedSum::blocks, &SharedSum::groups, &SharedSum::threads}) {
      int64_t& number = device.shared_sums.back().*field;
      if (!TakeNumber(values, number) || number < 1 || number > kLargestCount) return false;
    }
    return true;
  }

  bool ReadEvent(std::string_view item, std::string_view values, RecordedDevice& device) {
    RecordedEvent event;
    if (item == "m") return true;
    const bool is_event = item.size() == 1 && ReadValues(item.front(), values, device, event);
    if (is_event) device.events.push_back(event);
    if (!is_event) expected_ = "an event of a known pool or block";
    return is_event;
  }

  bool ReadValues(char item, std::string_view values, RecordedDevice& device,
                  RecordedEvent& event) {
    switch (item) {
      case 'a':
        event.kind = Kind::kAllocate;
        is_held_.push_back(true);
        ++device.num_allocations;
        return TakeNumber(values, event.value) && event.value <= kLargestRequest &&
               TakePool(values, device, event.pool);
      case 'f':
        event.kind = Kind::kFree;
        return TakeNumber(values, event.value) && TakeHeld(event.value);
      case 'o':
        event.kind = Kind::kOutOfMemory;
        if (!TakeNumber(values, event.value)) return false;
        event.value = std::min(event.value, kLargestRequest);
        return TakePool(values, device, event.pool);
      case 'e':
        event.kind = Kind::kEmptyCache;
        return true;
      case 'r':
        event.kind = Kind::kEmptyPrivate;
        return TakePool(values, device, event.pool);
      default:
        return false;
    }
  }

  static bool TakePool(std::string_view& values, const RecordedDevice& device, uint16_t& pool) {
    int64_t number = 0;
    if (!TakeNumber(values, number)) return false;
    if (static_cast<size_t>(number) >= device.private_pools.size()) return false;
    pool = static_cast<uint16_t>(number);
    return true;
  }

  bool TakeHeld(int64_t block) {
    const auto index = static_cast<size_t>(block);
    if (index >= is_held_.size() || !is_held_[index]) return false;
    is_held_[index] = false;
    return true;
  }

  std::string_view rest_;
  std::string_view line_;
  int64_t num_lines_ = 0;
  std::string expected_;
  std::vector<bool> is_held_;  // by allocation of the last device
  std::vector<RecordedDevice> devices_;
};

}  // namespace

std::variant<std::vector<RecordedDevice>, std::string> ReadRecordedEvents(std::string_view text) {
  return Reader(text).Read();
}

}  // namespace hpo::memory
