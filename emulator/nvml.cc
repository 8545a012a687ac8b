// libnvidia-ml: the emulated cards as NVML shows them. Built several times, once per way in which a
// driver may differ (tests/common/device): see CMakeLists.txt.
//   FAKE_OLD            only the first versions of the calls
//   FAKE_WITHOUT_UUID   lacks nvmlDeviceGetUUID
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "emulator/machine.h"

namespace {

using hpo::emulator::Card;
using hpo::emulator::Machine;
using hpo::emulator::Settings;

constexpr int kUninitialized = 1;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr int kDriverNotLoaded = 9;
constexpr int kGpuIsLost = 15;
constexpr unsigned long long kNotAvailable = ~0ULL;
constexpr unsigned int kNoInstance = ~0U;
constexpr unsigned int kMostMigDevices = 7;

// Other processes of HPO_EMULATED_OTHERS have these numbers. The first of several is another
// user's: NVML tells neither its memory nor its name.
constexpr unsigned int kFirstOther = 5'000'000;  // above any number that Linux gives

int g_num_users = 0;  // of the library, by init and shutdown

// A handle is the card's index plus one, so that no handle is null. That of a GPU which MIG divides
// is its first device's, behind all others: what it does not say for itself that one says.
constexpr int kFirstDivided = 1000;

int HandleOf(const void* device) { return static_cast<int>(reinterpret_cast<intptr_t>(device)); }
bool IsDivided(const void* device) { return HandleOf(device) > kFirstDivided; }
int CardOf(const void* device) {
  return HandleOf(device) - (IsDivided(device) ? kFirstDivided : 0) - 1;
}

// What NVML counts: cards, or those that MIG divides.
unsigned int NumGpus() {
  const Settings& settings = Machine::Get().settings();
  return static_cast<unsigned int>(settings.cards.size()) /
         static_cast<unsigned int>(std::max(1, settings.mig));
}

struct Memory {
  size_t total;
  size_t reserved;
  size_t used;
  size_t free() const { return total - reserved - used; }
};

Memory ReadMemory(const void* device) {
  Machine& machine = Machine::Get();
  const Settings& settings = machine.settings();
  const auto card = static_cast<size_t>(CardOf(device));
  const size_t usable = TotalBytes(settings, card);
  const size_t others = settings.others * static_cast<size_t>(settings.num_others);
  return {.total = usable + DriverBytes(settings, card),
          .reserved = DriverBytes(settings, card),
          .used = std::min(usable, others + machine.state().Used(CardOf(device)))};
}

struct Process {
  unsigned int pid;
  unsigned long long used;
};

std::vector<Process> ReadProcesses(const void* device) {
  Machine& machine = Machine::Get();
  const Settings& settings = machine.settings();
  std::vector<Process> found;
  for (int i = 0; i < settings.num_others; ++i) {
    const bool hidden = i == 0 && settings.num_others > 1;
    found.push_back(
        {kFirstOther + static_cast<unsigned int>(i), hidden ? kNotAvailable : settings.others});
  }
  for (const auto& holding : machine.state().Holdings(CardOf(device))) {
    found.push_back({static_cast<unsigned int>(holding.pid), holding.bytes});
  }
  return found;
}

// Fills `records` as far as `*count` allows, and says how many there are.
template <typename Record, typename Make>
int ListProcesses(const void* device, unsigned int* count, Record* records, Make make) {
  const std::vector<Process> processes = ReadProcesses(device);
  const bool fits = processes.size() <= *count;
  *count = static_cast<unsigned int>(processes.size());
  if (!fits) return kInsufficientSize;
  std::transform(processes.begin(), processes.end(), records, make);
  return 0;
}

int Init() {
  if (g_num_users == 0) Machine::Reread();
  const int code = Machine::Get().CountCall("nvmlInit_v2");
  if (code == 0) ++g_num_users;
  return code;
}

int Count(unsigned int* count) {
  if (g_num_users == 0) return kUninitialized;
  *count = NumGpus();
  return Machine::Get().CountCall("nvmlDeviceGetCount_v2");
}

int Handle(unsigned int index, void** device) {
  if (index >= NumGpus()) return kInvalidArgument;
  const intptr_t mig = Machine::Get().settings().mig;
  const intptr_t handle = mig == 0 ? index + intptr_t{1} : kFirstDivided + index * mig + 1;
  *device = reinterpret_cast<void*>(handle);
  return Machine::Get().CountCall("nvmlDeviceGetHandleByIndex_v2");
}

}  // namespace

// Begins a call that can fail: it is counted, and faults may be put on it by this name
// (make_libraries.py finds them so). A sticky error of CUDA does not touch NVML.
#define HPO_NVML_CALL(name) \
  if (const int fault = Machine::Get().CountCall(#name); fault != 0) return fault

extern "C" {

struct MemoryV1 {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned int version;
  unsigned long long total, reserved, free, used;
};
struct ProcessV1 {
  unsigned int pid;
  unsigned long long used;
};
struct ProcessV2 {
  unsigned int pid;
  unsigned long long used;
  unsigned int gpu_instance, compute_instance;
};
struct Attributes {
  unsigned int multiprocessors, shared_engines[5], gpu_slices, compute_slices;
  unsigned long long memory_mib;
};

int nvmlShutdown() {
  HPO_NVML_CALL(nvmlShutdown);
  g_num_users = std::max(0, g_num_users - 1);
  return 0;
}

const char* nvmlErrorString(int code) {
  switch (code) {
    case 0:
      return "emulated: no error";
    case kDriverNotLoaded:
      return "emulated: no driver";
    case kGpuIsLost:
      return "emulated: the card is lost";
    default:
      return "emulated: another error";
  }
}

int nvmlSystemGetDriverVersion(char* text, unsigned int length) {
  HPO_NVML_CALL(nvmlSystemGetDriverVersion);
  std::snprintf(text, length, "%s", hpo::emulator::kDriverVersion);
  return 0;
}

int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  HPO_NVML_CALL(nvmlSystemGetCudaDriverVersion_v2);
  *version = static_cast<int>(Machine::Get().settings().versions.cuda);
  return 0;
}

int nvmlDeviceGetName(void* device, char* text, unsigned int length) {
  HPO_NVML_CALL(nvmlDeviceGetName);
  const Card& card = Machine::Get().settings().cards[static_cast<size_t>(CardOf(device))];
  std::snprintf(text, length, "%s", ShownName(card).c_str());
  return 0;
}

#ifndef FAKE_WITHOUT_UUID
int nvmlDeviceGetUUID(void* device, char* text, unsigned int length) {
  HPO_NVML_CALL(nvmlDeviceGetUUID);
  const Settings& settings = Machine::Get().settings();
  const int card = CardOf(device);
  std::snprintf(
      text, length, "%s",
      (IsDivided(device) ? DividedUuid(settings, card) : ShownUuid(settings, card)).c_str());
  return 0;
}
#endif

// The first version counts the driver's own share as used.
int nvmlDeviceGetMemoryInfo(void* device, MemoryV1* memory) {
  HPO_NVML_CALL(nvmlDeviceGetMemoryInfo);
  const Memory read = ReadMemory(device);
  *memory = {.total = read.total, .free = read.free(), .used = read.used + read.reserved};
  return 0;
}

// Torch takes this version for its message when memory runs out, whatever else there is.
int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned int* count, ProcessV1* records) {
  HPO_NVML_CALL(nvmlDeviceGetComputeRunningProcesses);
  return ListProcesses(device, count, records, [](const Process& one) {
    return ProcessV1{one.pid, one.used};
  });
}

#ifdef FAKE_OLD

int nvmlInit() { return Init(); }
int nvmlDeviceGetCount(unsigned int* count) { return Count(count); }
int nvmlDeviceGetHandleByIndex(unsigned int index, void** device) { return Handle(index, device); }

#else

int nvmlInit_v2() { return Init(); }
int nvmlDeviceGetCount_v2(unsigned int* count) { return Count(count); }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  return Handle(index, device);
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  HPO_NVML_CALL(nvmlDeviceGetHandleByPciBusId_v2);
  unsigned int domain = 0;
  unsigned int bus = 0;
  const bool read = std::sscanf(id, "%x:%x", &domain, &bus) == 2 && bus >= 1;
  if (!read || bus > Machine::Get().settings().cards.size()) return kNotFound;
  *device = reinterpret_cast<void*>(static_cast<intptr_t>(bus));
  return 0;
}

int nvmlDeviceGetMemoryInfo_v2(void* device, MemoryV2* memory) {
  HPO_NVML_CALL(nvmlDeviceGetMemoryInfo_v2);
  if (memory->version != (sizeof(MemoryV2) | (2U << 24))) return kInvalidArgument;
  const Memory read = ReadMemory(device);
  memory->total = read.total;
  memory->reserved = read.reserved;
  memory->free = read.free();
  memory->used = read.used;
  return 0;
}

int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  HPO_NVML_CALL(nvmlDeviceGetCudaComputeCapability);
  const Card& card = Machine::Get().settings().cards[static_cast<size_t>(CardOf(device))];
  *major = card.capability / 10;
  *minor = card.capability % 10;
  return 0;
}

int nvmlDeviceGetNumGpuCores(void* device, unsigned int* count) {
  HPO_NVML_CALL(nvmlDeviceGetNumGpuCores);
  if (Machine::Get().settings().mig > 0) return kNotSupported;
  const Card& card = Machine::Get().settings().cards[static_cast<size_t>(CardOf(device))];
  *count = static_cast<unsigned int>(card.num_multiprocessors * card.cores_per_multiprocessor);
  return 0;
}

int nvmlDeviceGetMigMode(void* device, unsigned int* current, unsigned int* pending) {
  HPO_NVML_CALL(nvmlDeviceGetMigMode);
  *current = IsDivided(device) ? 1 : 0;
  *pending = *current;
  return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned int* count) {
  HPO_NVML_CALL(nvmlDeviceGetMaxMigDeviceCount);
  *count = IsDivided(device) ? kMostMigDevices : 0;
  return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned int index, void** part) {
  HPO_NVML_CALL(nvmlDeviceGetMigDeviceHandleByIndex);
  if (!IsDivided(device)) return kNotSupported;
  if (index >= static_cast<unsigned int>(Machine::Get().settings().mig)) return kNotFound;
  *part = reinterpret_cast<void*>(static_cast<intptr_t>(CardOf(device)) + index + 1);
  return 0;
}

int nvmlDeviceGetAttributes_v2(void* device, Attributes* attributes) {
  HPO_NVML_CALL(nvmlDeviceGetAttributes_v2);
  const Settings& settings = Machine::Get().settings();
  if (settings.mig == 0 || IsDivided(device)) return kNotSupported;
  const Card& card = settings.cards[static_cast<size_t>(CardOf(device))];
  *attributes = {.multiprocessors = static_cast<unsigned int>(card.num_multiprocessors),
                 .shared_engines = {},
                 .gpu_slices = 1,
                 .compute_slices = 1,
                 .memory_mib = card.nvml_mib};
  return 0;
}

int nvmlSystemGetProcessName(unsigned int pid, char* text, unsigned int length) {
  HPO_NVML_CALL(nvmlSystemGetProcessName);
  const Settings& settings = Machine::Get().settings();
  const unsigned int other = pid - kFirstOther;
  if (pid >= kFirstOther && other < static_cast<unsigned int>(settings.num_others)) {
    if (other == 0 && settings.num_others > 1) return kNoPermission;
    std::snprintf(text, length, "/opt/bin/python%u train.py --part 1/2", pid);
    return 0;
  }
  const std::string path = "/proc/" + std::to_string(pid) + "/comm";
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return kNotFound;
  const bool read = std::fgets(text, static_cast<int>(length), file) != nullptr;
  std::fclose(file);
  if (read) text[std::strcspn(text, "\n")] = '\0';
  return read ? 0 : kNotFound;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned int* count, ProcessV2* records) {
  HPO_NVML_CALL(nvmlDeviceGetComputeRunningProcesses_v3);
  return ListProcesses(device, count, records, [](const Process& one) {
    return ProcessV2{one.pid, one.used, kNoInstance, kNoInstance};
  });
}

// Torch wants these to be there, and calls them between cards alone.
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned int, unsigned int*) {
  return kNotSupported;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned int, void*) { return kNotSupported; }
int nvmlDeviceGetGpuFabricInfoV(void*, void*) { return kNotSupported; }

#endif

}  // extern "C"
