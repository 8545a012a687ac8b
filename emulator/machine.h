// The machine that a process sees: its emulated cards, and what is to go wrong on them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/address_space.h"
#include "emulator/report.h"
#include "emulator/settings.h"
#include "emulator/shared_state.h"

namespace hpo::emulator {

// Where a call of a library that is not CUDA's own runtime fails after a sticky fault.
constexpr int kLibraryExecutionFailed = 13;  // CUBLAS_STATUS_EXECUTION_FAILED

// One for each process, made at the first call: torch registers its kernels before main. Safe for
// threads. Devices are numbered as CUDA does after CUDA_VISIBLE_DEVICES, cards as NVML does.
class Machine {
 public:
  // Ends the program with one line where the environment is wrong.
  static Machine& Get();

  // Reads the environment again, unless the process has used a card. NVML's init does.
  static void Reread();

  const Settings& settings() const { return settings_; }
  CallLog& log() { return log_; }
  SharedState& state() { return state_; }

  // Counts a call. The code that a fault wants of it, 0 where it goes on.
  int CountCall(const char* call);
  // The code of a sticky fault that has happened, or 0.
  int sticky() const { return sticky_; }

  int num_devices() const { return static_cast<int>(visible_.size()); }
  int CardOf(int device) const { return visible_[static_cast<size_t>(device)]; }
  const Card& card(int device) const;

  size_t TotalBytes(int device) const;
  size_t FreeBytes(int device);

  // Makes sure that the process holds its context on the device; false where that does not fit.
  bool UseDevice(int device);

  // Memory without an address; false if it does not fit.
  bool Take(int device, size_t bytes);
  void Give(int device, size_t bytes) { state_.Give(CardOf(device), bytes); }

  // Null where the card is full.
  char* Allocate(int device, size_t bytes);
  // False where `address` was not given out.
  bool Free(const void* address);
  bool IsDeviceAddress(const void* address);
  // The device of an allocation, `otherwise` for an address that has none of its own.
  int DeviceOf(const void* address, int otherwise);

  // Memory without an address, and addresses without memory: expandable segments. 0: full.
  uint64_t CreatePages(int device, size_t bytes);
  void ReleasePages(uint64_t pages);
  char* ReserveAddresses(size_t bytes);
  void ReleaseAddresses(const void* address);

 private:
  struct Allocation {
    int device;
    size_t bytes;
  };

  explicit Machine(Settings settings);
  size_t Limit(int card) const;

  const Settings settings_;
  CallLog log_;
  SharedState state_;
  std::vector<int> visible_;  // card of each device
  std::atomic<int> sticky_{0};

  std::mutex context_mutex_;  // a context is taken once
  std::mutex mutex_;          // guards what follows
  std::unordered_map<std::string, int64_t> num_calls_;
  AddressSpace addresses_;
  std::unordered_map<const void*, Allocation> allocations_;
  std::unordered_map<uint64_t, Allocation> pages_;
  uint64_t last_pages_ = 0;
};

// The device of the calling thread, for the runtime and the driver.
int CurrentDevice();
void SetCurrentDevice(int device);

// What NVML says of the driver that is not there.
constexpr const char* kDriverVersion = "580.65.06";

// The cards of a process as CUDA numbers them by CUDA_VISIBLE_DEVICES: what names no card ends the
// list, and a card that is there twice empties it. Of MIG devices a process can use one.
std::vector<int> VisibleCards(const Settings& settings);

using Uuid = std::array<unsigned char, 16>;
// Of card `card`, the same in every process; another kind of card has another.
Uuid CardUuid(const Settings& settings, int card);
// As NVML and CUDA_VISIBLE_DEVICES have it: "GPU-...", with MIG "MIG-...".
std::string ShownUuid(const Settings& settings, int card);
// Of the GPU whose first MIG device is `card`.
std::string DividedUuid(const Settings& settings, int card);

}  // namespace hpo::emulator

extern "C" {
// Ends the program, naming the call: what the generated stand-ins of calls do that are not
// emulated.
[[noreturn]] void hpoEmulatedMissing(const char* call);
// A call of a library that writes no device memory: counts it, and returns 0 or a fault's code.
int hpoEmulatedSilent(const char* call);
// The same for one that computes: all known values of device memory are forgotten.
int hpoEmulatedCompute(const char* call);
}
