#include "emulator/streams/launches.h"

#include <algorithm>

#include "emulator/device_values.h"
#include "emulator/machine.h"
#include "emulator/streams/streams.h"

namespace hpo::emulator {
namespace {

constexpr size_t kMaxThreadsPerBlock = 1024;
constexpr int kMaxBlocksPerMultiprocessor = 32;

std::string ShapeText(const LaunchShape& shape) {
  return std::to_string(shape.x) + "," + std::to_string(shape.y) + "," + std::to_string(shape.z);
}

size_t Count(const LaunchShape& shape) { return size_t{shape.x} * shape.y * shape.z; }

const Card& CurrentCard() { return Machine::Get().card(CurrentDevice()); }

}  // namespace

size_t SharedBytesPerBlock() {
  return static_cast<size_t>(CurrentCard().shared_kib_per_block) << 10;
}

int EnqueueLaunch(const Launch& launch) {
  Machine& machine = Machine::Get();
  if (!machine.UseDevice(CurrentDevice())) return kLaunchOutOfMemory;
  if (auto& log = machine.log(); log.is_on()) {
    log.Write("launch " + launch.kernel + " grid " + ShapeText(launch.grid) + " block " +
              ShapeText(launch.block) + " shared " + std::to_string(launch.shared_bytes));
  }
  const bool is_empty = Count(launch.block) == 0 || Count(launch.grid) == 0;
  const LaunchShape& grid = launch.grid;
  if (is_empty || Count(launch.block) > kMaxThreadsPerBlock || grid.x > 0x7fffffffU ||
      grid.y > 65535 || grid.z > 65535) {
    return kLaunchInvalidConfiguration;
  }
  if (launch.shared_bytes > SharedBytesPerBlock()) return kLaunchTooMuchShared;
  return Streams::Get().Enqueue(launch.stream, NodeKind::kKernel, [] { Values().ForgetAll(); });
}

int BlocksPerMultiprocessor(int block_size, size_t shared_bytes) {
  const Card& card = CurrentCard();
  const int by_threads = card.threads_per_multiprocessor / std::max(1, block_size);
  const int num_blocks = std::min(kMaxBlocksPerMultiprocessor, by_threads);
  if (shared_bytes == 0) return num_blocks;
  const int kib = static_cast<int>((shared_bytes + 1023) / 1024) + card.reserved_shared_kib;
  return std::min(num_blocks, card.shared_kib_per_multiprocessor / kib);
}

}  // namespace hpo::emulator
