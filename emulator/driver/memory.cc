// libcuda: memory. Expandable segments map it by themselves; other programs allocate it.
#include <string>

#include "emulator/device_values.h"
#include "emulator/driver/calls.h"
#include "emulator/host_memory.h"
#include "emulator/streams/copies.h"
#include "emulator/streams/streams.h"

namespace {

using hpo::emulator::Address;
using hpo::emulator::AddressSpace;
using hpo::emulator::CurrentDevice;
using hpo::emulator::EnqueueCopy;
using hpo::emulator::EnqueueSet;
using hpo::emulator::HostMemory;
using hpo::emulator::Machine;

CUresult Result(int code) { return static_cast<CUresult>(code); }

template <typename Value>
CUresult Answer(void* out, Value value) {
  *static_cast<Value*>(out) = value;
  return CUDA_SUCCESS;
}

CUresult HostAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  if (!HostMemory::Get().IsPinned(Address(pointer))) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Answer<unsigned>(value, CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Answer(value, pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return Answer(value, Address(pointer));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Answer<unsigned>(value, 0);
    default:
      hpoEmulatedMissing(
          ("cuPointerGetAttribute(" + std::to_string(attribute) + ") of host memory").c_str());
  }
}

}  // namespace

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

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  HPO_DRIVER_CALL(cuMemAlloc_v2);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *pointer = reinterpret_cast<CUdeviceptr>(Machine::Get().Allocate(CurrentDevice(), bytes));
  return *pointer == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  HPO_DRIVER_CALL(cuMemFree_v2);
  return Machine::Get().Free(Address(pointer)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  HPO_DRIVER_CALL(cuMemGetInfo_v2);
  Machine& machine = Machine::Get();
  if (!machine.UseDevice(CurrentDevice())) return CUDA_ERROR_OUT_OF_MEMORY;
  *free = machine.FreeBytes(CurrentDevice());
  *total = machine.TotalBytes(CurrentDevice());
  return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  HPO_DRIVER_CALL(cuMemAllocHost_v2);
  *pointer = HostMemory::Get().Allocate(bytes);
  return *pointer == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned int) {
  HPO_DRIVER_CALL(cuMemHostAlloc);
  *pointer = HostMemory::Get().Allocate(bytes);
  return *pointer == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void* pointer) {
  HPO_DRIVER_CALL(cuMemFreeHost);
  HostMemory::Get().Free(pointer);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  HPO_DRIVER_CALL(cuMemcpyHtoD_v2);
  return Result(EnqueueCopy(Address(to), from, bytes, nullptr));
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  HPO_DRIVER_CALL(cuMemcpyDtoH_v2);
  return Result(EnqueueCopy(to, Address(from), bytes, nullptr));
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  HPO_DRIVER_CALL(cuMemcpyDtoD_v2);
  return Result(EnqueueCopy(Address(to), Address(from), bytes, nullptr));
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  HPO_DRIVER_CALL(cuMemcpyHtoDAsync_v2);
  return Result(EnqueueCopy(Address(to), from, bytes, stream));
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  HPO_DRIVER_CALL(cuMemcpyDtoHAsync_v2);
  return Result(EnqueueCopy(to, Address(from), bytes, stream));
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  HPO_DRIVER_CALL(cuMemcpyDtoDAsync_v2);
  return Result(EnqueueCopy(Address(to), Address(from), bytes, stream));
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes) {
  HPO_DRIVER_CALL(cuMemsetD8_v2);
  return Result(EnqueueSet(Address(to), value, bytes, nullptr));
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  HPO_DRIVER_CALL(cuMemsetD8Async);
  return Result(EnqueueSet(Address(to), value, bytes, stream));
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  HPO_DRIVER_CALL(cuPointerGetAttribute);
  Machine& machine = Machine::Get();
  if (!machine.IsDeviceAddress(Address(pointer))) return HostAttribute(value, attribute, pointer);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Answer<unsigned>(value, CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Answer(value, pointer);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Answer(value, machine.DeviceOf(Address(pointer), CurrentDevice()));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Answer<unsigned>(value, 0);
    default:
      hpoEmulatedMissing(
          ("cuPointerGetAttribute(" + std::to_string(attribute) + ") of device memory").c_str());
  }
}

}  // extern "C"
