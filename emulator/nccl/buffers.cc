#include "emulator/nccl/buffers.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>

namespace hpo::emulator::nccl {
namespace {

constexpr size_t kKiB = size_t{1} << 10;
constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kPage = 2 * kMiB;  // NCCL takes device memory by cuMemCreate

// The receiving end of a connection holds a buffer for each protocol: NCCL_BUFFSIZE for Simple
// (documented), and together 5,447,680 bytes for LL, LL128 and flags. With the default of 4 MiB
// that is 9,641,984 bytes, measured in tonyd2wild/DeepSeek-V4.1-Flash-vLLM-DGX-Spark#8, and
// 10,485,760 in pages, listed by NCCL_DEBUG_SUBSYS=ALLOC in NVIDIA/nccl#1685.
constexpr size_t kOtherProtocolBytes = 5447680;
// The sending end holds flags only, in a page of their own: 2,097,152 in NVIDIA/nccl#1685.
constexpr size_t kSenderBytes = kPage;

// NVIDIA/nccl#2366: one rank on an RTX 3090 takes 484 MiB with the CUDA context in it, and no
// buffers. NVIDIA/nccl#964: two ranks on A100 take 544 MiB at 24 channels, 256 MiB more
// than their connections. Taken once for each process and GPU; that it does not grow with each
// communicator is not published.
constexpr size_t kKernelBytes = 256 * kMiB;

size_t InPages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

size_t ReceiverBytes(const BufferSettings& settings) {
  return InPages(settings.buffer_bytes + kOtherProtocolBytes);
}

bool ContainsAny(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  });
}

// A variable's positive number, or `otherwise`.
size_t NumberOr(const char* variable, size_t otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  const long long number = std::atoll(text);
  return number > 0 ? static_cast<size_t>(number) : otherwise;
}

size_t Limited(int channels, const BufferSettings& settings) {
  return static_cast<size_t>(std::min(channels, settings.max_channels));
}

}  // namespace

BufferSettings ReadBufferSettings() {
  BufferSettings settings;
  settings.buffer_bytes = NumberOr("NCCL_BUFFSIZE", settings.buffer_bytes) / kKiB * kKiB;
  settings.max_channels = static_cast<int>(NumberOr("NCCL_MAX_NCHANNELS", 64));
  return settings;
}

Channels ChannelsOf(std::string_view gpu_name) {
  // CUDA gives no access between two GeForce cards: NCCL goes through the host ("via SHM").
  if (ContainsAny(gpu_name, {"GeForce"})) return {};
  // NVIDIA/nccl#713: 6 rings on V100, each for two channels.
  if (ContainsAny(gpu_name, {"V100-SXM", "P100-SXM"})) return {12, 12};
  // NVIDIA/nccl#578 (A100), #2094 (H100): 24 channels. NVIDIA/nccl#1685: 32 to each peer. For
  // Blackwell, none is published: those of Hopper.
  if (ContainsAny(gpu_name,
                  {"A100-SXM", "H100 80GB HBM3", "H200", "H20", "B200", "B300", "GB200"})) {
    return {24, 32};
  }
  // NVIDIA/nccl#1773, and "2 p2p channels per peer" in #1706: over PCIe.
  return {2, 2};
}

size_t KernelBytes() { return kKernelBytes; }

// A ring: each channel receives from one neighbour and sends to the other. Trees use the same
// connections between two ranks; between more, and NVLink SHARP, they add some that are not known.
size_t CollectiveBytes(std::string_view gpu_name, const BufferSettings& settings) {
  const size_t channels = Limited(ChannelsOf(gpu_name).of_collectives, settings);
  return channels * (ReceiverBytes(settings) + kSenderBytes);
}

// NVIDIA/nccl#1685: an AlltoAll of 8 H100 takes 3.28 GB: 14 MiB for each of 7 x 32 channels, the
// two ends of a connection and a page more.
size_t PeerBytes(std::string_view gpu_name, const BufferSettings& settings) {
  const size_t channels = Limited(ChannelsOf(gpu_name).to_peer, settings);
  return channels * (ReceiverBytes(settings) + 2 * kSenderBytes);
}

}  // namespace hpo::emulator::nccl
