// Device memory that NCCL itself takes, on one machine. NCCL publishes the size of one buffer; the
// rest is from its users' measurements, each named at its constant in buffers.cc. It is certain for
// few machines: docs/EMULATOR.md says for which.
#pragma once

#include <cstddef>
#include <string_view>

namespace hpo::emulator::nccl {

// NCCL_BUFFSIZE and NCCL_MAX_NCHANNELS of the environment, or their defaults.
struct BufferSettings {
  size_t buffer_bytes = size_t{4} << 20;
  int max_channels = 64;
};
BufferSettings ReadBufferSettings();

// How many channels NCCL opens between two GPUs of this name: many over NVLink, few over PCIe.
struct Channels {
  int of_collectives = 0;
  int to_peer = 0;  // for sends and receives
};
// Zeros for GPUs that reach each other through the host's memory only: their buffers lie there.
Channels ChannelsOf(std::string_view gpu_name);

// Bytes that a process takes on a GPU at its first communicator there: NCCL's kernels.
size_t KernelBytes();
// Bytes that a communicator of several ranks takes on each GPU at its first collective.
size_t CollectiveBytes(std::string_view gpu_name, const BufferSettings& settings);
// The same at its first send to or receive from another rank.
size_t PeerBytes(std::string_view gpu_name, const BufferSettings& settings);

}  // namespace hpo::emulator::nccl
