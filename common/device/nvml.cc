#include "common/device/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo {
namespace {

// NVML's C interface, as much of it as is called here.
using ReturnCode = int;
constexpr ReturnCode kSuccess = 0;
constexpr ReturnCode kInsufficientSize = 7;
constexpr unsigned long long kNotAvailable = ~0ULL;
constexpr unsigned int kTextLength = 96;  // longest of the fixed-size texts: names and UUIDs
constexpr unsigned int kPathLength = 1024;

struct DeviceRecord;
using Device = DeviceRecord*;

struct MemoryV1 {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct MemoryV2 {
  unsigned int version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
constexpr unsigned int kMemoryV2Version = sizeof(MemoryV2) | (2U << 24);

struct ProcessV1 {
  unsigned int pid;
  unsigned long long used;
};

// The layout of the calls _v2 and _v3.
struct ProcessV2 {
  unsigned int pid;
  unsigned long long used;
  unsigned int gpu_instance;
  unsigned int compute_instance;
};

// Source: CUDA C++ Programming Guide, "Compute Capabilities": 32-bit floating-point additions per
// clock cycle, and the maximum number of resident threads, of a multiprocessor.
struct Multiprocessor {
  int capability;  // 10 x major + minor
  unsigned int cores;
  int threads;
};
constexpr Multiprocessor kMultiprocessors[] = {
    {60, 64, 2048},  {61, 128, 2048},  {62, 128, 2048},  {70, 64, 2048},   {72, 64, 2048},
    {75, 64, 1024},  {80, 64, 2048},   {86, 128, 1536},  {87, 128, 1536},  {89, 128, 1536},
    {90, 128, 2048}, {100, 128, 2048}, {103, 128, 2048}, {120, 128, 1536},
};

Bytes ToBytes(unsigned long long count) { return Bytes{static_cast<int64_t>(count)}; }

GpuProcess ToProcess(unsigned int pid, unsigned long long used) {
  GpuProcess result{.pid = pid, .used = std::nullopt};
  if (used != kNotAvailable) result.used = ToBytes(used);
  return result;
}

struct CloseLibrary {
  void operator()(void* handle) const { dlclose(handle); }
};
using LibraryHandle = std::unique_ptr<void, CloseLibrary>;

// Sets `function` to the first of `names` that the library has; null and false where it has none.
template <typename Function>
bool Resolve(void* handle, std::initializer_list<const char*> names, Function*& function) {
  for (const char* name : names) {
    function = reinterpret_cast<Function*>(dlsym(handle, name));
    if (function != nullptr) return true;
  }
  return false;
}

// Reads a list whose length the driver knows better than we do. Empty where it may not be read:
// who uses a card is a help in a message, never a reason to fail.
template <typename Record>
std::vector<GpuProcess> ReadProcessList(ReturnCode (*call)(Device, unsigned int*, Record*),
                                        Device device) {
  std::vector<Record> records(16);
  unsigned int count = static_cast<unsigned int>(records.size());
  ReturnCode code = call(device, &count, records.data());
  if (code == kInsufficientSize) {
    records.resize(count + 16);  // some may start between the two calls
    count = static_cast<unsigned int>(records.size());
    code = call(device, &count, records.data());
  }
  std::vector<GpuProcess> result;
  if (code != kSuccess) return result;
  records.resize(std::min<size_t>(count, records.size()));
  for (const Record& record : records) result.push_back(ToProcess(record.pid, record.used));
  return result;
}

}  // namespace

// The library and the calls found in it. Only the calls of which there are two kinds may be null
// after Load: memory_v2 and processes_*; and those that older drivers lack: process_name,
// capability and num_cores.
struct NvmlProbe::Library {
  std::string path;
  LibraryHandle handle;
  bool initialized = false;

  ReturnCode (*init)() = nullptr;
  ReturnCode (*shutdown)() = nullptr;
  const char* (*error_string)(ReturnCode) = nullptr;
  ReturnCode (*driver_version)(char*, unsigned int) = nullptr;
  ReturnCode (*device_count)(unsigned int*) = nullptr;
  ReturnCode (*device_by_index)(unsigned int, Device*) = nullptr;
  ReturnCode (*device_name)(Device, char*, unsigned int) = nullptr;
  ReturnCode (*device_uuid)(Device, char*, unsigned int) = nullptr;
  ReturnCode (*memory_v1)(Device, MemoryV1*) = nullptr;
  ReturnCode (*memory_v2)(Device, MemoryV2*) = nullptr;
  ReturnCode (*processes_v1)(Device, unsigned int*, ProcessV1*) = nullptr;
  ReturnCode (*processes_v2)(Device, unsigned int*, ProcessV2*) = nullptr;
  ReturnCode (*process_name)(unsigned int, char*, unsigned int) = nullptr;
  ReturnCode (*capability)(Device, int* major, int* minor) = nullptr;
  ReturnCode (*num_cores)(Device, unsigned int*) = nullptr;

  ~Library() {
    if (initialized) shutdown();
  }

  absl::Status Load();
  absl::Status Error(absl::string_view call, ReturnCode code) const {
    return absl::UnavailableError(
        absl::StrCat("NVML: ", call, " failed: ", error_string(code), " (code ", code, ")"));
  }
  absl::StatusOr<unsigned int> Count() const;
  absl::StatusOr<GpuState> ReadDevice(unsigned int index) const;
  absl::Status ReadMemory(Device device, GpuState& gpu) const;
  void ReadShape(Device device, GpuState& gpu) const;
  std::vector<GpuProcess> ReadProcesses(Device device) const;
  std::string ProcessName(int64_t pid) const;
};

absl::Status NvmlProbe::Library::Load() {
  handle.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (handle == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no NVIDIA driver: ", path, " not found (", dlerror(), ")"));
  }
  void* const library = handle.get();
  const std::pair<bool, const char*> needed[] = {
      {Resolve(library, {"nvmlInit_v2", "nvmlInit"}, init), "nvmlInit_v2"},
      {Resolve(library, {"nvmlShutdown"}, shutdown), "nvmlShutdown"},
      {Resolve(library, {"nvmlErrorString"}, error_string), "nvmlErrorString"},
      {Resolve(library, {"nvmlSystemGetDriverVersion"}, driver_version),
       "nvmlSystemGetDriverVersion"},
      {Resolve(library, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, device_count),
       "nvmlDeviceGetCount_v2"},
      {Resolve(library, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"},
               device_by_index),
       "nvmlDeviceGetHandleByIndex_v2"},
      {Resolve(library, {"nvmlDeviceGetName"}, device_name), "nvmlDeviceGetName"},
      {Resolve(library, {"nvmlDeviceGetUUID"}, device_uuid), "nvmlDeviceGetUUID"},
      {Resolve(library, {"nvmlDeviceGetMemoryInfo"}, memory_v1), "nvmlDeviceGetMemoryInfo"},
  };
  for (const auto& [found, name] : needed) {
    if (!found) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, " is not a usable NVML: it has no ", name));
    }
  }
  Resolve(library, {"nvmlDeviceGetMemoryInfo_v2"}, memory_v2);
  Resolve(library,
          {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"},
          processes_v2);
  Resolve(library, {"nvmlDeviceGetComputeRunningProcesses"}, processes_v1);
  Resolve(library, {"nvmlSystemGetProcessName"}, process_name);
  Resolve(library, {"nvmlDeviceGetCudaComputeCapability"}, capability);
  Resolve(library, {"nvmlDeviceGetNumGpuCores"}, num_cores);
  return absl::OkStatus();
}

absl::StatusOr<unsigned int> NvmlProbe::Library::Count() const {
  unsigned int count = 0;
  if (const ReturnCode code = device_count(&count); code != kSuccess) {
    return Error("nvmlDeviceGetCount", code);
  }
  return count;
}

absl::Status NvmlProbe::Library::ReadMemory(Device device, GpuState& gpu) const {
  if (memory_v2 != nullptr) {
    MemoryV2 memory{.version = kMemoryV2Version, .total = 0, .reserved = 0, .free = 0, .used = 0};
    if (memory_v2(device, &memory) == kSuccess) {
      gpu.total = ToBytes(memory.total);
      gpu.free = ToBytes(memory.free);
      gpu.used = ToBytes(memory.used);
      return absl::OkStatus();
    }
  }
  MemoryV1 memory{};
  if (const ReturnCode code = memory_v1(device, &memory); code != kSuccess) {
    return Error(absl::StrCat("nvmlDeviceGetMemoryInfo of GPU ", gpu.index), code);
  }
  gpu.total = ToBytes(memory.total);
  gpu.free = ToBytes(memory.free);
  gpu.used = ToBytes(memory.used);
  return absl::OkStatus();
}

void NvmlProbe::Library::ReadShape(Device device, GpuState& gpu) const {
  int major = 0;
  int minor = 0;
  if (capability == nullptr || capability(device, &major, &minor) != kSuccess) return;
  gpu.capability = absl::StrCat(major, ".", minor);
  const auto* const known =
      std::find_if(std::begin(kMultiprocessors), std::end(kMultiprocessors),
                   [&](const Multiprocessor& one) { return one.capability == 10 * major + minor; });
  unsigned int cores = 0;
  if (known == std::end(kMultiprocessors) || num_cores == nullptr) return;
  if (num_cores(device, &cores) != kSuccess) return;
  gpu.multiprocessors = cores / known->cores;
  gpu.threads_per_multiprocessor = known->threads;
}

std::vector<GpuProcess> NvmlProbe::Library::ReadProcesses(Device device) const {
  std::vector<GpuProcess> processes;
  if (processes_v2 != nullptr) {
    processes = ReadProcessList(processes_v2, device);
  } else if (processes_v1 != nullptr) {
    processes = ReadProcessList(processes_v1, device);
  }
  for (GpuProcess& running : processes) running.name = ProcessName(running.pid);
  return processes;
}

// The driver names a process by its path, and some versions by the whole command line.
std::string NvmlProbe::Library::ProcessName(int64_t pid) const {
  std::array<char, kPathLength> text{};
  if (process_name == nullptr ||
      process_name(static_cast<unsigned int>(pid), text.data(), kPathLength - 1) != kSuccess) {
    return "";
  }
  const std::string line(text.data());
  const std::string program = line.substr(0, line.find(' '));
  return program.substr(program.rfind('/') + 1);
}

absl::StatusOr<GpuState> NvmlProbe::Library::ReadDevice(unsigned int index) const {
  GpuState gpu;
  gpu.index = index;
  Device device = nullptr;
  if (const ReturnCode code = device_by_index(index, &device); code != kSuccess) {
    return Error(absl::StrCat("nvmlDeviceGetHandleByIndex of GPU ", index), code);
  }
  std::array<char, kTextLength> text{};
  if (const ReturnCode code = device_uuid(device, text.data(), kTextLength); code != kSuccess) {
    return Error(absl::StrCat("nvmlDeviceGetUUID of GPU ", index), code);
  }
  gpu.uuid = text.data();
  if (const ReturnCode code = device_name(device, text.data(), kTextLength); code != kSuccess) {
    return Error(absl::StrCat("nvmlDeviceGetName of GPU ", index), code);
  }
  gpu.name = text.data();
  if (driver_version(text.data(), kTextLength) == kSuccess) gpu.driver = text.data();
  HPO_RETURN_IF_ERROR(ReadMemory(device, gpu));
  ReadShape(device, gpu);
  gpu.processes = ReadProcesses(device);
  return gpu;
}

NvmlProbe::NvmlProbe(std::unique_ptr<Library> library) : library_(std::move(library)) {}

NvmlProbe::~NvmlProbe() = default;

absl::StatusOr<std::unique_ptr<NvmlProbe>> NvmlProbe::Create(const std::string& library) {
  auto loaded = std::make_unique<Library>();
  loaded->path = library;
  HPO_RETURN_IF_ERROR(loaded->Load());
  if (const ReturnCode code = loaded->init(); code != kSuccess) {
    return loaded->Error("nvmlInit", code);
  }
  loaded->initialized = true;
  return std::unique_ptr<NvmlProbe>(new NvmlProbe(std::move(loaded)));
}

absl::StatusOr<std::vector<GpuState>> NvmlProbe::List() {
  HPO_ASSIGN_OR_RETURN(const unsigned int count, library_->Count());
  std::vector<GpuState> gpus;
  absl::Status first_failure;
  for (unsigned int index = 0; index < count; ++index) {
    absl::StatusOr<GpuState> gpu = library_->ReadDevice(index);
    if (gpu.ok()) {
      gpus.push_back(*std::move(gpu));
    } else {
      first_failure.Update(gpu.status());
    }
  }
  if (gpus.empty() && !first_failure.ok()) return first_failure;
  return gpus;
}

absl::StatusOr<GpuState> NvmlProbe::Read(int64_t index) {
  HPO_ASSIGN_OR_RETURN(const unsigned int count, library_->Count());
  if (index < 0 || index >= static_cast<int64_t>(count)) {
    HPO_ASSIGN_OR_RETURN(const std::vector<GpuState> gpus, List());
    return absl::NotFoundError(
        absl::StrCat("no GPU ", index, " on this machine; there are: ", DescribeGpus(gpus)));
  }
  return library_->ReadDevice(static_cast<unsigned int>(index));
}

}  // namespace hpo
