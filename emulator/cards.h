// The GPUs that can be emulated, as their drivers report them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hpo::emulator {

// One GPU of the table in cards.cc, where the sources are, or of a user's file (card_file.h).
struct Card {
  std::string name;     // on a command line
  std::string product;  // as the driver calls it
  int capability = 0;   // 10 x major + minor
  int num_multiprocessors = 0;
  int l2_kib = 0;
  size_t cuda_bytes = 0;  // total of cudaMemGetInfo
  size_t nvml_mib = 0;    // memory.total of nvidia-smi: the driver's own share is in it
  int clock_mhz = 0;      // highest, of the multiprocessors
  int memory_clock_mhz = 0;
  int memory_bus_bits = 0;

  // By compute capability.
  int threads_per_multiprocessor = 0;
  int cores_per_multiprocessor = 0;
  int shared_kib_per_multiprocessor = 0;
  int shared_kib_per_block = 0;  // what a kernel may ask for
  int reserved_shared_kib = 0;   // taken of it by each block
};

// The table, in the order of compute capability and memory.
const std::vector<Card>& Cards();

// Sets what the compute capability determines. Returns false for a capability that is not known.
bool SetLimits(Card& card);

// Finds a GPU in `cards` by name, product or alias; null where there is none. Upper case, blanks,
// dashes and the words NVIDIA, GeForce, Tesla and RTX make no difference.
const Card* FindCard(const std::vector<Card>& cards, std::string_view name);

// The names that `name` may have been meant for, nearest first: "a100-40gb, a10, a10g".
std::string NearestNames(const std::vector<Card>& cards, std::string_view name);

// Returns the other names of a GPU of the table.
std::vector<std::string> AliasesOf(std::string_view name);

// What CUDA and NVML show: every report says that the GPU is emulated.
std::string ShownName(const Card& card);

// The capabilities (10 x major + minor, rising) that torch's build has kernels for: those of
// HPO_EMULATED_CAPABILITIES, else of the torch that this tree was built with. Empty where neither
// is there.
const std::vector<int>& TorchCapabilities();

// The newest of TorchCapabilities whose kernels run on the GPU: of the same major version and not
// newer. Returns 0 where there is none.
int KernelCapability(const Card& card);

}  // namespace hpo::emulator
