#include "emulator/device_values.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace hpo::emulator {
namespace {

uintptr_t Number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

}  // namespace

std::map<uintptr_t, std::string> DeviceValues::Parts(uintptr_t start, uintptr_t end) const {
  std::map<uintptr_t, std::string> parts;
  auto range = ranges_.upper_bound(start);
  if (range != ranges_.begin()) --range;
  for (; range != ranges_.end() && range->first < end; ++range) {
    const auto& [known, bytes] = *range;
    const uintptr_t from = std::max(known, start);
    const uintptr_t to = std::min(known + bytes.size(), end);
    if (from < to) parts.emplace_hint(parts.end(), from, bytes.substr(from - known, to - from));
  }
  return parts;
}

void DeviceValues::Cut(uintptr_t start, uintptr_t end) {
  TakeExpected(start, end);
  auto range = ranges_.upper_bound(start);
  if (range != ranges_.begin()) --range;
  while (range != ranges_.end() && range->first < end) {
    const uintptr_t known = range->first;
    const std::string bytes = std::move(range->second);
    range = ranges_.erase(range);
    num_bytes_ -= bytes.size();
    if (known < start) Add(known, bytes.substr(0, start - known));
    if (known + bytes.size() > end) Add(end, bytes.substr(end - known));
  }
}

void DeviceValues::Add(uintptr_t address, std::string bytes) {
  if (bytes.empty()) return;
  num_bytes_ += bytes.size();
  ranges_[address] = std::move(bytes);
}

std::map<uintptr_t, DeviceValues::Expected> DeviceValues::TakeExpected(uintptr_t start,
                                                                       uintptr_t end) {
  std::map<uintptr_t, Expected> taken;
  auto range = expected_.upper_bound(start);
  if (range != expected_.begin()) --range;
  while (range != expected_.end() && range->first < end) {
    const auto next = std::next(range);
    if (range->first + range->second.num_bytes > start) taken.insert(expected_.extract(range));
    range = next;
  }
  return taken;
}

// Without the lock, since others work on while this waits.
void DeviceValues::Arrive(uintptr_t start, uintptr_t end) {
  std::map<uintptr_t, Expected> due;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    due = TakeExpected(start, end);
  }
  for (const auto& [address, expected] : due) {
    const std::optional<std::string> bytes = expected.arrive();
    if (bytes.has_value()) Remember(reinterpret_cast<const void*>(address), *bytes);
  }
}

void DeviceValues::Expect(const void* address, size_t bytes,
                          std::function<std::optional<std::string>()> arrive) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uintptr_t start = Number(address);
  Cut(start, start + bytes);
  expected_[start] = {.num_bytes = bytes, .arrive = std::move(arrive)};
}

void DeviceValues::Remember(const void* address, std::string_view bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uintptr_t start = Number(address);
  Cut(start, start + bytes.size());
  if (bytes.size() > kLongest) return;
  if (num_bytes_ + bytes.size() > kMost || ranges_.size() == kMostRanges) {
    ranges_.clear();
    num_bytes_ = 0;
  }
  Add(start, std::string(bytes));
}

std::optional<std::string> DeviceValues::Find(const void* address, size_t bytes) {
  Arrive(Number(address), Number(address) + bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes > num_bytes_) return std::nullopt;
  std::string found;
  for (const auto& [start, part] : Parts(Number(address), Number(address) + bytes)) {
    if (start != Number(address) + found.size()) return std::nullopt;
    found += part;
  }
  if (found.size() != bytes) return std::nullopt;
  return found;
}

void DeviceValues::Copy(const void* to, const void* from, size_t bytes) {
  Arrive(Number(from), Number(from) + bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (num_bytes_ == 0 && expected_.empty()) return;
  auto parts = Parts(Number(from), Number(from) + bytes);
  Cut(Number(to), Number(to) + bytes);
  for (auto& [start, part] : parts) {
    if (num_bytes_ + part.size() > kMost || ranges_.size() == kMostRanges) return;
    Add(start - Number(from) + Number(to), std::move(part));
  }
}

void DeviceValues::Forget(const void* address, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Cut(Number(address), Number(address) + bytes);
}

void DeviceValues::ForgetAll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ranges_.clear();
  num_bytes_ = 0;
  expected_.clear();
}

DeviceValues& Values() {
  static DeviceValues* const values = new DeviceValues;
  return *values;
}

std::optional<std::string> KnownBytes(const void* address, size_t bytes) {
  return Values().Find(address, bytes);
}

void Remember(const void* address, std::string_view bytes) { Values().Remember(address, bytes); }

void Forget(const void* address, size_t bytes) { Values().Forget(address, bytes); }

}  // namespace hpo::emulator

int hpoEmulatedKnownBytes(const void* address, void* out, size_t bytes) {
  const auto known = hpo::emulator::KnownBytes(address, bytes);
  if (known.has_value()) std::memcpy(out, known->data(), bytes);
  return known.has_value() ? 1 : 0;
}

void hpoEmulatedRemember(const void* address, const void* bytes, size_t num_bytes) {
  hpo::emulator::Remember(address, {static_cast<const char*>(bytes), num_bytes});
}
