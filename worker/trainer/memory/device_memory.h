// Memory of the device a trial trains on: one interface over the counting allocator of the CPU and
// the caching allocator of CUDA. Everything that decides or reports about memory goes through it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/bytes.h"
#include "memory/allocator/allocator_model.h"

namespace hpo::trainer {

// A moment's reading. `reserved` equals `live` on a CPU.
struct MemoryUse {
  Bytes live;           // held by tensors
  Bytes reserved;       // held from the device, caches included
  Bytes peak;           // largest `live` since ResetPeak
  Bytes reserved_peak;  // largest `reserved` since ResetPeak
  Bytes free;           // what the device would still give
  Bytes total;          // of the device; with a limit, the limit
  // How often the allocator had to give its cache back to serve a request, since the process began;
  // 0 on a CPU.
  int64_t alloc_retries = 0;
};

// The last allocation that was refused.
struct RefusedAllocation {
  Bytes requested;
  Bytes live;         // at that moment
  Bytes limit;        // in force at that moment; 0: none but the device's size
  Bytes device_free;  // what the device would still have given; 0 when unknown
};

// What a device is.
struct DeviceDescription {
  std::string kind;        // "CPU" or "GPU": how log lines call it
  std::string name;        // of the card
  std::string uuid;        // of the card, as the driver writes it: "GPU-..."
  std::string capability;  // "9.0"; on a CPU the instruction set, "AVX2"
  // Of the caching allocator; nullopt: the counting allocator.
  std::optional<memory::AllocatorOptions> allocator;
  // Of a card; see DeviceProfile.
  int64_t multiprocessors = 0;
  int64_t threads_per_multiprocessor = 0;
};

// What a device can do about a shortage beyond giving its cache back.
enum class Relief {
  kNewWorkspaces,       // libraries' workspaces are freed; what runs next makes new ones
  kExpandableSegments,  // until the next limit the allocator's segments grow instead of becoming
                        // more
};

// Methods may throw c10::Error when the device is lost (a sticky CUDA error). Thread-safe.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  virtual MemoryUse Read() const = 0;

  // Both peaks start again from now.
  virtual void ResetPeak() = 0;

  // Tensors (CUDA: the allocator, its cache included) may not hold more than `limit`; 0: no limit.
  // A limit is a trial's: segments that were made to grow for the one before grow no more.
  virtual void SetLimit(Bytes limit) = 0;

  // Gives caches back to the device, after all work on it is done.
  virtual void ReleaseCache() = 0;

  // false: there is nothing of the kind here, or it is so already.
  virtual bool Relieve(Relief relief) = 0;

  // The last refusal since the last call.
  virtual std::optional<RefusedAllocation> TakeRefused() = 0;

  virtual DeviceDescription Describe() const = 0;
};

}  // namespace hpo::trainer
