// Which errors mean that memory ran out, and which that the device is lost.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "common/study/trial.h"
#include "worker/trainer/memory/device_memory.h"

namespace hpo::trainer {

enum class MemoryFaultType {
  kDevice,      // the device's allocator, or a CUDA library that wanted memory
  kHost,        // std::bad_alloc, the host's allocator
  kDeviceLost,  // a sticky CUDA error or a broken communicator: this process cannot go on
};

// An error taken out of its exception: holds no tensor.
struct MemoryFault {
  MemoryFaultType type = MemoryFaultType::kDevice;
  std::string message;    // one line, without the stack
  std::string traceback;  // the stack where it was thrown; may be empty
  std::optional<RefusedAllocation> refused;
  // false: such an error mostly means memory, and goes away with a smaller batch; where nothing
  // smaller helps, it is a failure.
  bool certain = true;
};

// What `error` says about memory, or nullopt when it is another error. By type for
// c10::OutOfMemoryError and std::bad_alloc; by CUDA's error code for c10::AcceleratorError; by text
// for what CUDA's libraries and torch's own CPU allocator throw as plain c10::Error.
// `refused` is left empty.
std::optional<MemoryFault> ClassifyError(const std::exception& error);

// Live bytes that would have been needed at `fault`, at least: what was live and what was asked
// for; where that is unknown, the peak that was reached.
Bytes NeededAtLeast(const MemoryFault& fault, const MemoryUse& use);

// Of which kind it is. `use` is the reading before anything was freed, `step` the number
// of optimizer steps done.
//   kHost           a fault of the host
//   kDirtyDevice    the limit would have allowed it, the device had no room: others hold it
//   kFragmentation  the cache held enough bytes, but not in one piece
//   kLatePeak       after the first step
//   kConfiguration  otherwise
OomKind KindOfOom(const MemoryFault& fault, const MemoryUse& use, int64_t step);

}  // namespace hpo::trainer
