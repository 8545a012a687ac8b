// Values of device memory that are known. No kernel computes, so most are not: only what a copy or
// a memset wrote, until something may have written there again. All stand-ins of a process share
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace hpo::emulator {

// Known byte ranges of device memory, by address. Safe for threads.
//
// A value is returned only if it is certain: no work since then may have changed it.
// - Copies from the host and memsets set known bytes, copies between device ranges carry known
// bytes.
// - Freeing or unmapping a range forgets it.
// - Every kernel, and every library call that computes, forgets all values. The arguments of a
//   kernel are opaque: their number and sizes are in the fat binary, which is not looked into, and
//   a pointer's range is not known either, since small tensors share one allocation. So any launch
//   may have written anywhere. This is enough for what PyTorch does below its dispatcher without a
//   kernel between: item() of a tensor from the host, DDP's check of shapes, collectives of
//   sizes. Values that outlive a kernel are kept above the dispatcher, in Python.
// - A call whose stand-in knows what it writes (a collective) names its ranges instead.
class DeviceValues {
 public:
  // Longest range that one call remembers: 64 Ki elements of 8 bytes. Longer ones are forgotten.
  static constexpr size_t kLongest = size_t{512} << 10;
  // Known bytes and ranges altogether. When a range would exceed them, all older ones are
  // forgotten.
  static constexpr size_t kMost = size_t{16} << 20;
  static constexpr size_t kMostRanges = size_t{64} << 10;

  // Sets the bytes from `address` on.
  void Remember(const void* address, std::string_view bytes);
  // The range is written later: `arrive` returns its bytes, if they are known, and may wait. It is
  // called by whoever first reads a part of the range, and never if it is written meanwhile.
  void Expect(const void* address, size_t bytes,
              std::function<std::optional<std::string>()> arrive);
  // The bytes of [address, address + bytes), nothing unless all of them are known.
  std::optional<std::string> Find(const void* address, size_t bytes);
  // Carries what is known of [from, from + bytes) to `to`; the rest of the target becomes unknown.
  // The ranges may overlap.
  void Copy(const void* to, const void* from, size_t bytes);
  void Forget(const void* address, size_t bytes);
  void ForgetAll();

 private:
  struct Expected {
    size_t num_bytes;
    std::function<std::optional<std::string>()> arrive;
  };

  void Add(uintptr_t address, std::string bytes);
  void Cut(uintptr_t start, uintptr_t end);
  // Takes the expected ranges that overlap with [start, end) out.
  std::map<uintptr_t, Expected> TakeExpected(uintptr_t start, uintptr_t end);
  void Arrive(uintptr_t start, uintptr_t end);
  // The known parts of [start, end), by address.
  std::map<uintptr_t, std::string> Parts(uintptr_t start, uintptr_t end) const;

  mutable std::mutex mutex_;
  std::map<uintptr_t, std::string> ranges_;  // by their start; they neither overlap nor are empty
  size_t num_bytes_ = 0;
  std::map<uintptr_t, Expected> expected_;  // by their start; they do not overlap
};

// The values of this process.
DeviceValues& Values();

// The bytes of a device range, nothing unless all of them are known.
std::optional<std::string> KnownBytes(const void* address, size_t bytes);
// Says that a device range holds `bytes`: what a stand-in knows to have been written.
void Remember(const void* address, std::string_view bytes);
// Says that a device range was written with what nobody knows.
void Forget(const void* address, size_t bytes);

}  // namespace hpo::emulator

// The same for a program that has no C++, such as Python's ctypes.
extern "C" {
// 1 and the bytes in `out` if all of them are known, otherwise 0.
int hpoEmulatedKnownBytes(const void* address, void* out, size_t bytes);
void hpoEmulatedRemember(const void* address, const void* bytes, size_t num_bytes);
}
