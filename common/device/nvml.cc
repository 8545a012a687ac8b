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
constexpr ReturnCode kNoPermission = 4;
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

// What of its GPU a MIG device has.
struct Attributes {
  unsigned int multiprocessors;
  unsigned int shared_engines[5];  // copy, decoder, encoder, JPEG, optical flow
  unsigned int gpu_slices;
  unsigned int compute_slices;
  unsigned long long memory_mib;
};
constexpr unsigned int kMigEnabled = 1;

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
// capability, num_cores, and those of MIG.
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
  ReturnCode (*mig_mode)(Device, unsigned int* current, unsigned int* pending) = nullptr;
  ReturnCode (*max_mig_devices)(Device, unsigned int*) = nullptr;
  ReturnCode (*mig_by_index)(Device, unsigned int, Device*) = nullptr;
  ReturnCode (*attributes)(Device, Attributes*) = nullptr;

  ~Library() {
    if (initialized) shutdown();
  }

  absl::Status Load();
  absl::Status Error(absl::string_view call, ReturnCode code) const {
    return absl::UnavailableError(
        absl::StrCat("NVML: ", call, " failed: ", error_string(code), " (code ", code, ")"));
  }
  // What CUDA can use: a GPU, or a MIG device of one.
  struct Unit {
    Device device = nullptr;
    Device gpu = nullptr;  // the same, or the one that it is a part of
    int64_t index = 0;     // of the GPU
    bool is_part() const { return device != gpu; }
  };
  // Those that answer; `failure` is the first of the others', where there are any.
  absl::StatusOr<std::vector<Unit>> Units(absl::Status& failure) const;
  void AddUnits(Device gpu, int64_t index, std::vector<Unit>& units) const;
  absl::StatusOr<std::string> ReadUuid(Device device, int64_t index) const;
  absl::StatusOr<GpuState> ReadUnit(const Unit& unit) const;
  absl::Status ReadMemory(Device device, GpuState& gpu) const;
  void ReadShape(const Unit& unit, GpuState& gpu) const;
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
  Resolve(library, {"nvmlDeviceGetMigMode"}, mig_mode);
  Resolve(library, {"nvmlDeviceGetMaxMigDeviceCount"}, max_mig_devices);
  Resolve(library, {"nvmlDeviceGetMigDeviceHandleByIndex"}, mig_by_index);
  Resolve(library, {"nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes"}, attributes);
  return absl::OkStatus();
}

// GPUs that a control group hides from this process (Slurm's ConstrainDevices) have no number.
absl::StatusOr<std::vector<NvmlProbe::Library::Unit>> NvmlProbe::Library::Units(
    absl::Status& failure) const {
  unsigned int count = 0;
  if (const ReturnCode code = device_count(&count); code != kSuccess) {
    return Error("nvmlDeviceGetCount", code);
  }
  std::vector<Unit> units;
  int64_t index = -1;
  for (unsigned int i = 0; i < count; ++i) {
    Device gpu = nullptr;
    const ReturnCode code = device_by_index(i, &gpu);
    if (code == kNoPermission) continue;
    ++index;
    if (code == kSuccess) {
      AddUnits(gpu, index, units);
    } else {
      failure.Update(Error(absl::StrCat("nvmlDeviceGetHandleByIndex of GPU ", i), code));
    }
  }
  return units;
}

void NvmlProbe::Library::AddUnits(Device gpu, int64_t index, std::vector<Unit>& units) const {
  unsigned int current = 0;
  unsigned int pending = 0;
  const bool has_calls =
      mig_mode != nullptr && max_mig_devices != nullptr && mig_by_index != nullptr;
  const bool divided =
      has_calls && mig_mode(gpu, &current, &pending) == kSuccess && current == kMigEnabled;
  if (!divided) {
    units.push_back({.device = gpu, .gpu = gpu, .index = index});
    return;
  }
  unsigned int most = 0;
  if (max_mig_devices(gpu, &most) != kSuccess) return;
  for (unsigned int i = 0; i < most; ++i) {
    Device part = nullptr;
    if (mig_by_index(gpu, i, &part) != kSuccess) continue;
    units.push_back({.device = part, .gpu = gpu, .index = index});
  }
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

void NvmlProbe::Library::ReadShape(const Unit& unit, GpuState& gpu) const {
  int major = 0;
  int minor = 0;
  if (capability == nullptr || capability(unit.gpu, &major, &minor) != kSuccess) return;
  gpu.capability = absl::StrCat(major, ".", minor);
  const auto* const known =
      std::find_if(std::begin(kMultiprocessors), std::end(kMultiprocessors),
                   [&](const Multiprocessor& one) { return one.capability == 10 * major + minor; });
  if (known == std::end(kMultiprocessors)) return;
  unsigned int cores = 0;
  Attributes part{};
  if (unit.is_part()) {
    if (attributes == nullptr || attributes(unit.device, &part) != kSuccess) return;
    gpu.multiprocessors = part.multiprocessors;
  } else {
    if (num_cores == nullptr || num_cores(unit.device, &cores) != kSuccess) return;
    gpu.multiprocessors = cores / known->cores;
  }
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

absl::StatusOr<std::string> NvmlProbe::Library::ReadUuid(Device device, int64_t index) const {
  std::array<char, kTextLength> text{};
  if (const ReturnCode code = device_uuid(device, text.data(), kTextLength); code != kSuccess) {
    return Error(absl::StrCat("nvmlDeviceGetUUID of GPU ", index), code);
  }
  return std::string(text.data());
}

absl::StatusOr<GpuState> NvmlProbe::Library::ReadUnit(const Unit& unit) const {
  GpuState gpu;
  gpu.index = unit.index;
  HPO_ASSIGN_OR_RETURN(gpu.uuid, ReadUuid(unit.device, unit.index));
  if (unit.is_part()) {
    HPO_ASSIGN_OR_RETURN(gpu.parent_uuid, ReadUuid(unit.gpu, unit.index));
  }
  std::array<char, kTextLength> text{};
  if (const ReturnCode code = device_name(unit.device, text.data(), kTextLength);
      code != kSuccess) {
    return Error(absl::StrCat("nvmlDeviceGetName of GPU ", unit.index), code);
  }
  gpu.name = text.data();
  if (driver_version(text.data(), kTextLength) == kSuccess) gpu.driver = text.data();
  HPO_RETURN_IF_ERROR(ReadMemory(unit.device, gpu));
  ReadShape(unit, gpu);
  gpu.processes = ReadProcesses(unit.device);
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
  absl::Status first_failure;
  HPO_ASSIGN_OR_RETURN(const std::vector<Library::Unit> units, library_->Units(first_failure));
  std::vector<GpuState> gpus;
  for (const Library::Unit& unit : units) {
    absl::StatusOr<GpuState> gpu = library_->ReadUnit(unit);
    if (gpu.ok()) {
      gpus.push_back(*std::move(gpu));
    } else {
      first_failure.Update(gpu.status());
    }
  }
  if (gpus.empty() && !first_failure.ok()) return first_failure;
  return gpus;
}

absl::StatusOr<GpuState> NvmlProbe::Read(const std::string& uuid) {
  absl::Status first_failure;
  HPO_ASSIGN_OR_RETURN(const std::vector<Library::Unit> units, library_->Units(first_failure));
  for (const Library::Unit& unit : units) {
    const absl::StatusOr<std::string> found = library_->ReadUuid(unit.device, unit.index);
    if (found.ok() && *found == uuid) return library_->ReadUnit(unit);
    first_failure.Update(found.status());
  }
  if (!first_failure.ok()) return first_failure;  // of the one that it is, perhaps
  HPO_ASSIGN_OR_RETURN(const std::vector<GpuState> gpus, List());
  return absl::NotFoundError(
      absl::StrCat("no GPU ", uuid, " on this machine; there are: ", DescribeGpus(gpus)));
}

}  // namespace hpo
