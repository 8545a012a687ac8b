// The calls of CUDA's driver that torch makes: expandable segments' memory, and its context. Part
// of libcuda.so.1 and of libcudart, which hands their addresses out.
#include "emulator/driver_calls.h"

#include <cuda.h>

#include <string_view>
#include <utility>

#include "emulator/device_values.h"
#include "emulator/machine.h"

namespace {

using hpo::emulator::AddressSpace;
using hpo::emulator::Machine;

// The driver's codes are the runtime's for all errors that are emulated. What works with memory
// fails after a sticky error; what asks about contexts does not.
CUresult Enter(const char* call) {
  Machine& machine = Machine::Get();
  const int sticky = std::string_view(call).starts_with("cuMem") ? machine.sticky() : 0;
  return static_cast<CUresult>(sticky != 0 ? sticky : machine.CountCall(call));
}

// There is one context for each process and device; programs only pass it around.
CUcontext TheContext() {
  static char context;
  return reinterpret_cast<CUcontext>(&context);
}

void* Address(CUdeviceptr pointer) { return reinterpret_cast<void*>(pointer); }

}  // namespace

#define HPO_DRIVER_CALL(name)                                       \
  if (const CUresult fault = Enter(#name); fault != CUDA_SUCCESS) { \
    return fault;                                                   \
  }                                                                 \
  static_assert(true)

extern "C" {

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long) {
  HPO_DRIVER_CALL(cuMemCreate);
  *handle = Machine::Get().CreatePages(properties->location.id, bytes);
  return *handle == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  HPO_DRIVER_CALL(cuMemRelease);
  Machine::Get().ReleasePages(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* pointer, size_t bytes, size_t, CUdeviceptr,
                             unsigned long long) {
  HPO_DRIVER_CALL(cuMemAddressReserve);
  *pointer = reinterpret_cast<CUdeviceptr>(Machine::Get().ReserveAddresses(bytes));
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t) {
  HPO_DRIVER_CALL(cuMemAddressFree);
  Machine::Get().ReleaseAddresses(Address(pointer));
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) {
  HPO_DRIVER_CALL(cuMemMap);
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
  HPO_DRIVER_CALL(cuMemUnmap);
  hpo::emulator::Forget(Address(pointer), bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
  HPO_DRIVER_CALL(cuMemSetAccess);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  HPO_DRIVER_CALL(cuMemGetAllocationGranularity);
  *granularity = AddressSpace::kPage;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  HPO_DRIVER_CALL(cuDeviceGet);
  *device = ordinal;
  return CUDA_SUCCESS;
}

// Torch asks whether memory can be shared with other processes and machines: not emulated, so no.
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  HPO_DRIVER_CALL(cuDeviceGetAttribute);
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult code, const char** text) {
  *text = code == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "emulated: an error of the driver";
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  HPO_DRIVER_CALL(cuCtxGetCurrent);
  *context = TheContext();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext) {
  HPO_DRIVER_CALL(cuCtxSetCurrent);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  HPO_DRIVER_CALL(cuDevicePrimaryCtxGetState);
  *flags = 0;
  *active = Machine::Get().state().Holds(Machine::Get().CardOf(device)) ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  HPO_DRIVER_CALL(cuDevicePrimaryCtxRetain);
  *context = TheContext();
  return Machine::Get().UseDevice(device) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

}  // extern "C"

namespace hpo::emulator {

void* FindDriverCall(std::string_view name) {
  const std::pair<std::string_view, void*> calls[] = {
      {"cuMemCreate", reinterpret_cast<void*>(&cuMemCreate)},
      {"cuMemRelease", reinterpret_cast<void*>(&cuMemRelease)},
      {"cuMemAddressReserve", reinterpret_cast<void*>(&cuMemAddressReserve)},
      {"cuMemAddressFree", reinterpret_cast<void*>(&cuMemAddressFree)},
      {"cuMemMap", reinterpret_cast<void*>(&cuMemMap)},
      {"cuMemUnmap", reinterpret_cast<void*>(&cuMemUnmap)},
      {"cuMemSetAccess", reinterpret_cast<void*>(&cuMemSetAccess)},
      {"cuMemGetAllocationGranularity", reinterpret_cast<void*>(&cuMemGetAllocationGranularity)},
      {"cuDeviceGet", reinterpret_cast<void*>(&cuDeviceGet)},
      {"cuDeviceGetAttribute", reinterpret_cast<void*>(&cuDeviceGetAttribute)},
      {"cuGetErrorString", reinterpret_cast<void*>(&cuGetErrorString)},
      {"cuCtxGetCurrent", reinterpret_cast<void*>(&cuCtxGetCurrent)},
      {"cuCtxSetCurrent", reinterpret_cast<void*>(&cuCtxSetCurrent)},
  };
  for (const auto& [known, address] : calls) {
    if (known == name) return address;
  }
  return nullptr;
}

}  // namespace hpo::emulator
