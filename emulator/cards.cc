#include "emulator/cards.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hpo::emulator {
namespace {

// Capability, multiprocessors, L2 and CUDA's total: outputs of the CUDA sample deviceQuery and of
// torch.cuda.get_device_properties that users published, at drivers 535 to 580:
//   T4        15,828,320,256 bytes (with ECC), 40 multiprocessors
//   RTX 3060  12,629,508,096 bytes, 28
//   L4        23,580,639,232 bytes, 58 (vLLM's usage statistics)
//   A100      42,298,834,944 bytes, 108; the PCIe and the SXM4 card agree
//             (github.com/bottlerocket-os/bottlerocket/pull/3873)
//   H100      85,028,896,768 bytes, 132, L2 52,428,800 bytes (podman's container-device sample)
//   H200      150,109,880,320 bytes, 132, L2 62,914,560 bytes
// NVML's total: nvidia-smi, as Modal published it for its machines
// (github.com/modal-labs/modal-client/pull/2797; RTX 3060: users' listings).
// Threads and shared memory: CUDA C++ Programming Guide, technical specifications by compute
// capability.
// The V100 is here because torch 2.11 for CUDA 13 has no kernels for it.
constexpr Card kCards[] = {
    {"t4", "Tesla T4", 75, 40, 1024, 64, 64, 4096, 15828320256, 15360, false},
    {"rtx3060", "NVIDIA GeForce RTX 3060", 86, 28, 1536, 100, 99, 2304, 12629508096, 12288, false},
    {"l4", "NVIDIA L4", 89, 58, 1536, 100, 99, 49152, 23580639232, 23034, false},
    {"a100-40gb", "NVIDIA A100-PCIE-40GB", 80, 108, 2048, 164, 163, 40960, 42298834944, 40960,
     false},
    {"h100", "NVIDIA H100 80GB HBM3", 90, 132, 2048, 228, 227, 51200, 85028896768, 81559, true},
    {"h200", "NVIDIA H200", 90, 132, 2048, 228, 227, 61440, 150109880320, 143771, true},
    {"v100", "Tesla V100-SXM2-16GB", 70, 80, 2048, 96, 96, 6144, 16945512448, 16384, false},
};

constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"a100", "a100-40gb"}, {"rtx3060-12gb", "rtx3060"}, {"h100-80gb", "h100"}};

// Written by make_libraries.py from the compiler flags that torch reports of itself.
constexpr int kTorchCapabilities[] = {
#include "torch_capabilities.inc"
    0};

}  // namespace

std::span<const Card> Cards() { return kCards; }

const Card* FindCard(std::string_view name) {
  for (const auto& [alias, meant] : kAliases) {
    if (name == alias) name = meant;
  }
  const auto* const found = std::find_if(std::begin(kCards), std::end(kCards),
                                         [name](const Card& card) { return card.name == name; });
  return found == std::end(kCards) ? nullptr : found;
}

std::string CardNames() {
  std::string names;
  for (const Card& card : kCards) {
    if (!TorchCapabilities().empty() && KernelCapability(card) == 0) continue;
    names += (names.empty() ? "" : ", ") + std::string(card.name);
  }
  return names;
}

std::string ShownName(const Card& card) { return std::string(card.product) + " (emulated)"; }

std::span<const int> TorchCapabilities() {
  return std::span<const int>(kTorchCapabilities).first(std::size(kTorchCapabilities) - 1);
}

int KernelCapability(const Card& card) {
  int newest = 0;
  for (const int capability : TorchCapabilities()) {
    if (capability <= card.capability) newest = std::max(newest, capability);
  }
  return newest;
}

}  // namespace hpo::emulator
