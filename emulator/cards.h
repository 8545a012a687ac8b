// The cards that can be emulated, as their drivers report them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hpo::emulator {

// One row of the table in cards.cc, where the sources are.
struct Card {
  const char* name;     // on a command line
  const char* product;  // as the driver calls it
  int capability;       // 10 x major + minor
  int num_multiprocessors;
  int threads_per_multiprocessor;
  int shared_kib_per_multiprocessor;
  int shared_kib_per_block;  // what a kernel may ask for
  int l2_kib;
  size_t cuda_bytes;  // total of cudaMemGetInfo
  size_t nvml_mib;    // memory.total of nvidia-smi: the driver's own share is in it
  // Torch 2.11 takes cuDNN's attention for half precision, which is not emulated: an older cuDNN is
  // reported, with which torch takes flash or efficient attention.
  bool takes_cudnn_attention;
};

std::span<const Card> Cards();

// By name or alias, null where there is none.
const Card* FindCard(std::string_view name);

// Of those that torch's build runs on: "t4, rtx3060, ..."
std::string CardNames();

// What CUDA and NVML show: every report says that the card is emulated.
std::string ShownName(const Card& card);

// The capabilities (10 x major + minor, rising) that torch's build has kernels for. Empty where
// this tree was built without torch.
std::span<const int> TorchCapabilities();

// The newest of TorchCapabilities that the card runs, 0 where it runs none.
int KernelCapability(const Card& card);

}  // namespace hpo::emulator
