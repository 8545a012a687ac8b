// libcuda: devices and contexts. A process has one context on each device, its primary one.
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/driver/calls.h"
#include "emulator/driver/device_properties.h"
#include "emulator/streams/streams.h"

namespace {

using hpo::emulator::CurrentDevice;
using hpo::emulator::DescribeDevice;
using hpo::emulator::DeviceAttribute;
using hpo::emulator::Machine;
using hpo::emulator::SetCurrentDevice;
using hpo::emulator::Streams;

bool IsDevice(CUdevice device) { return device >= 0 && device < Machine::Get().num_devices(); }

// A context is the number of its device, from 1 on: libcuda and libcudart agree on it.
CUcontext ContextOf(CUdevice device) {
  return reinterpret_cast<CUcontext>(static_cast<uintptr_t>(device) + 1);
}

CUdevice DeviceOf(CUcontext context) {
  return static_cast<CUdevice>(reinterpret_cast<uintptr_t>(context)) - 1;
}

bool HasContext(CUdevice device) {
  Machine& machine = Machine::Get();
  return machine.state().Holds(machine.CardOf(device));
}

thread_local std::vector<CUdevice> t_pushed;

// Limits that programs set, with CUDA's documented defaults. The memory behind them is part of the
// context, whose bytes are counted already.
std::map<CUlimit, size_t>& Limits() {
  static auto* const limits =
      new std::map<CUlimit, size_t>{{CU_LIMIT_STACK_SIZE, 1024},
                                    {CU_LIMIT_PRINTF_FIFO_SIZE, size_t{1} << 20},
                                    {CU_LIMIT_MALLOC_HEAP_SIZE, size_t{8} << 20}};
  return *limits;
}
std::mutex g_limits_mutex;

size_t& LimitOrEnd(CUlimit limit, const char* call) {
  const auto found = Limits().find(limit);
  if (found != Limits().end()) return found->second;
  hpoEmulatedMissing((std::string(call) + "(" + std::to_string(limit) + ")").c_str());
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned int) {
  HPO_DRIVER_CALL(cuInit);
  return Machine::Get().num_devices() > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int* version) {
  HPO_DRIVER_CALL(cuDriverGetVersion);
  *version = static_cast<int>(hpo::emulator::Machine::Get().settings().versions.cuda);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  HPO_DRIVER_CALL(cuDeviceGetCount);
  *count = Machine::Get().num_devices();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  HPO_DRIVER_CALL(cuDeviceGet);
  if (!IsDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  HPO_DRIVER_CALL(cuDeviceGetName);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<size_t>(length), "%s", DescribeDevice(device).name);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  HPO_DRIVER_CALL(cuDeviceGetUuid_v2);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *uuid = DescribeDevice(device).uuid;
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  HPO_DRIVER_CALL(cuDeviceTotalMem_v2);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = Machine::Get().TotalBytes(device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  HPO_DRIVER_CALL(cuDeviceGetAttribute);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = DeviceAttribute("cuDeviceGetAttribute", attribute, device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  HPO_DRIVER_CALL(cuDeviceComputeCapability);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  const cudaDeviceProp properties = DescribeDevice(device);
  *major = properties.major;
  *minor = properties.minor;
  return CUDA_SUCCESS;
}

// The words are this project's own. Programs tell errors apart by their codes.
CUresult cuGetErrorString(CUresult code, const char** text) {
  HPO_DRIVER_CALL(cuGetErrorString);
  *text = code == CUDA_SUCCESS               ? "emulated: no error"
          : code == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory"
                                             : "emulated: an error of the driver";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult code, const char** text) {
  HPO_DRIVER_CALL(cuGetErrorName);
  *text = code == CUDA_SUCCESS ? "CUDA_SUCCESS" : "an error of the emulated GPU";
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  HPO_DRIVER_CALL(cuCtxGetCurrent);
  *context = HasContext(CurrentDevice()) ? ContextOf(CurrentDevice()) : nullptr;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  HPO_DRIVER_CALL(cuCtxSetCurrent);
  if (context == nullptr) return CUDA_SUCCESS;
  if (!IsDevice(DeviceOf(context))) return CUDA_ERROR_INVALID_CONTEXT;
  SetCurrentDevice(DeviceOf(context));
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  HPO_DRIVER_CALL(cuCtxPushCurrent_v2);
  if (context == nullptr || !IsDevice(DeviceOf(context))) return CUDA_ERROR_INVALID_CONTEXT;
  t_pushed.push_back(CurrentDevice());
  SetCurrentDevice(DeviceOf(context));
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  HPO_DRIVER_CALL(cuCtxPopCurrent_v2);
  if (t_pushed.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = ContextOf(CurrentDevice());
  SetCurrentDevice(t_pushed.back());
  t_pushed.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  HPO_DRIVER_CALL(cuCtxGetDevice);
  *device = CurrentDevice();
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  HPO_DRIVER_CALL(cuCtxSynchronize);
  return static_cast<CUresult>(Streams::Get().SynchronizeAll());
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  HPO_DRIVER_CALL(cuCtxGetStreamPriorityRange);
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = Streams::kGreatestPriority;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  HPO_DRIVER_CALL(cuCtxGetLimit);
  const std::lock_guard<std::mutex> lock(g_limits_mutex);
  *value = LimitOrEnd(limit, "cuCtxGetLimit");
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  HPO_DRIVER_CALL(cuCtxSetLimit);
  const std::lock_guard<std::mutex> lock(g_limits_mutex);
  LimitOrEnd(limit, "cuCtxSetLimit") = value;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  HPO_DRIVER_CALL(cuDevicePrimaryCtxGetState);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = HasContext(device) ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  HPO_DRIVER_CALL(cuDevicePrimaryCtxRetain);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *context = ContextOf(device);
  return Machine::Get().UseDevice(device) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// The context stays: torch holds it too.
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  HPO_DRIVER_CALL(cuDevicePrimaryCtxRelease_v2);
  return IsDevice(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // extern "C"
