// libcuda: its calls by name.
#include "emulator/driver/calls.h"

#include <dlfcn.h>

#include <array>
#include <mutex>
#include <string>
#include <utility>

#include "emulator/report.h"
#include "emulator/streams/streams.h"

namespace {

// One function for each call that is looked up and not emulated.
constexpr size_t kMaxMissing = 512;
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

void* MissingCall(std::string_view name) {
  static constexpr auto kCalls = MissingCalls(std::make_index_sequence<kMaxMissing>());
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  for (size_t i = 0; i < g_num_missing; ++i) {
    if (g_missing[i] == name) return reinterpret_cast<void*>(kCalls[i]);
  }
  if (g_num_missing == kMaxMissing) hpoEmulatedMissing(std::string(name).c_str());
  g_missing[g_num_missing] = name;
  return reinterpret_cast<void*>(kCalls[g_num_missing++]);
}

// The file of the library or program that has this address.
std::string FileAt(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "a library";
}

}  // namespace

extern "C" CUresult cuGetProcAddress_v2(const char* symbol, void** function, int, cuuint64_t,
                                        CUdriverProcAddressQueryResult* status) {
  HPO_DRIVER_CALL(cuGetProcAddress_v2);
  *function = hpo::emulator::FindDriverCall(symbol);
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}

// The first call of a CUDA runtime that is linked statically: it works by tables of the driver that
// NVIDIA does not publish, and the stand-in for libcudart cannot take its place.
extern "C" CUresult cuGetExportTable(const void**, const CUuuid*) {
  HPO_DRIVER_CALL(cuGetExportTable);
  hpo::emulator::EndWith(FileAt(__builtin_return_address(0)) +
                         " has a CUDA runtime of its own, linked statically, which cannot be "
                         "emulated: install a build of it that loads libcudart (nvcc --cudart "
                         "shared), or run the program without it");
}

namespace hpo::emulator {

void* FindDriverCall(std::string_view name) {
#define HPO_DRIVER_ENTRY(call) {#call, reinterpret_cast<void*>(&call)},
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  static const std::pair<std::string_view, void*> calls[] = {
#include "driver_entries.inc"
  };
#pragma GCC diagnostic pop
#undef HPO_DRIVER_ENTRY
  for (const auto& [known, address] : calls) {
    const bool is_version = known.starts_with(name) && known.substr(name.size()).starts_with("_v");
    if (known == name || is_version) return address;
  }
  return MissingCall(name);
}

// The driver's codes are the runtime's for all errors that are emulated. After a sticky error, what
// asks about devices and contexts still works.
CUresult EnterDriverCall(const char* call) {
  Machine& machine = Machine::Get();
  const std::string_view name = call;
  const bool only_asks = name.starts_with("cuCtx") || name.starts_with("cuDevice") ||
                         name.starts_with("cuGet") || name.starts_with("cuInit");
  if (!only_asks && machine.sticky() != 0) return static_cast<CUresult>(machine.sticky());
  return static_cast<CUresult>(machine.CountCall(call));
}

}  // namespace hpo::emulator
