#include "memory/replay/other_gpu.h"

#include <algorithm>

#include "memory/allocator/divide_up.h"

namespace hpo::memory {
namespace {

constexpr int64_t kHopper = 90;
constexpr int64_t kWorkspace = 4096 * 1024 * 2 + 16 * 1024 * 8;
constexpr int64_t kHopperWorkspace = 4096 * 1024 * 8;
// A thread sums 16 to 256 elements where blocks share a result.
constexpr int64_t kElementsRatio = 16;

// Blocks for each group of results that the GPU can run at once.
int64_t BlocksAtOnce(const SharedSum& sum, const GpuShape& gpu) {
  const int64_t blocks = gpu.multiprocessors * (gpu.threads_per_multiprocessor / sum.threads);
  return std::max<int64_t>(1, DivideUp(blocks, sum.groups));
}

// Recorded are max(min(at once, most), least), where most is about 16 x least.
int64_t BlocksOn(const SharedSum& sum, const GpuShape& from, const GpuShape& to) {
  const int64_t at_once = BlocksAtOnce(sum, to);
  const int64_t were_at_once = BlocksAtOnce(sum, from);
  int64_t most = sum.blocks;
  int64_t least = DivideUp(sum.blocks, kElementsRatio);
  if (sum.blocks == were_at_once) {
    most = at_once;
  } else if (sum.blocks > were_at_once) {
    most = sum.blocks * kElementsRatio;
    least = sum.blocks;
  }
  return std::max(std::min(at_once, most), least);
}

int64_t WorkspaceOf(const GpuShape& gpu) {
  return gpu.capability == kHopper ? kHopperWorkspace : kWorkspace;
}

}  // namespace

RecordingOnGpu OnGpu(const RecordedDevice& recorded, const GpuShape& gpu) {
  RecordingOnGpu result{.device = recorded};
  if (gpu == GpuShape{} || recorded.gpu == GpuShape{} || gpu == recorded.gpu) return result;
  RecordedDevice& other = result.device;
  other.gpu = gpu;
  result.num_unknown_sizes = recorded.num_sums_missing;
  for (const SharedSum& sum : recorded.shared_sums) {
    if (sum.event >= other.events.size()) continue;
    int64_t& bytes = other.events[sum.event].value;
    const int64_t bytes_of_a_block = bytes / sum.blocks;
    const int64_t blocks = BlocksOn(sum, recorded.gpu, gpu);
    if (sum.blocks >= BlocksAtOnce(sum, recorded.gpu) && blocks > sum.blocks) {
      ++result.num_unknown_sizes;
    }
    bytes =
        bytes_of_a_block <= kLargestRequest / blocks ? bytes_of_a_block * blocks : kLargestRequest;
  }
  for (const size_t event : recorded.workspaces) {
    if (event >= other.events.size()) continue;
    // Another size was set by CUBLAS_WORKSPACE_CONFIG.
    int64_t& bytes = other.events[event].value;
    if (bytes == WorkspaceOf(recorded.gpu)) bytes = WorkspaceOf(gpu);
  }
  return result;
}

}  // namespace hpo::memory
