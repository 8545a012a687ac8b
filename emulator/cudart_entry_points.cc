// libcudart: addresses of the driver's calls, which torch looks up by name.
#include <array>
#include <mutex>
#include <string>
#include <utility>

#include "emulator/cudart.h"
#include "emulator/driver_calls.h"

namespace {

// One function for each call that is looked up and not emulated: torch looks up many and calls few,
// and whichever it calls is to end the program with its own name.
constexpr size_t kMaxMissing = 128;
std::array<std::string, kMaxMissing> g_missing;
size_t g_num_missing = 0;

template <size_t kIndex>
void CallMissing() {
  hpoEmulatedMissing(g_missing[kIndex].c_str());
}

template <size_t... kIndices>
constexpr std::array<void (*)(), kMaxMissing> MissingCalls(std::index_sequence<kIndices...>) {
  return {&CallMissing<kIndices>...};
}

void* MissingCall(const char* name) {
  static constexpr auto kCalls = MissingCalls(std::make_index_sequence<kMaxMissing>());
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  for (size_t i = 0; i < g_num_missing; ++i) {
    if (g_missing[i] == name) return reinterpret_cast<void*>(kCalls[i]);
  }
  if (g_num_missing == kMaxMissing) hpoEmulatedMissing(name);
  g_missing[g_num_missing] = name;
  return reinterpret_cast<void*>(kCalls[g_num_missing++]);
}

}  // namespace

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                                        unsigned int, unsigned long long,
                                                        cudaDriverEntryPointQueryResult* status) {
  HPO_CUDA_CALL(cudaGetDriverEntryPointByVersion);
  *function = hpo::emulator::FindDriverCall(symbol);
  if (*function == nullptr) *function = MissingCall(symbol);
  if (status != nullptr) *status = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
