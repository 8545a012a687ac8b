// libcudart: which cards there are and what they are like.
#include <cstdio>

#include "emulator/cudart/cudart.h"
#include "emulator/driver/device_properties.h"

namespace {

using hpo::emulator::CurrentDevice;
using hpo::emulator::Done;
using hpo::emulator::Machine;

bool IsDevice(int device) { return device >= 0 && device < Machine::Get().num_devices(); }

}  // namespace

namespace hpo::emulator {

int KernelArchitecture() { return KernelCapability(Machine::Get().card(CurrentDevice())); }

}  // namespace hpo::emulator

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  HPO_CUDA_CALL(cudaGetDeviceCount);
  *count = Machine::Get().num_devices();
  return *count > 0 ? cudaSuccess : Done(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int* device) {
  *device = CurrentDevice();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!IsDevice(device)) return Done(cudaErrorInvalidDevice);
  HPO_CUDA_CALL(cudaSetDevice);
  hpo::emulator::SetCurrentDevice(device);
  return Machine::Get().UseDevice(device) ? cudaSuccess : Done(cudaErrorMemoryAllocation);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = static_cast<int>(Machine::Get().settings().versions.cuda);
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = static_cast<int>(Machine::Get().settings().versions.cuda);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!IsDevice(device)) return Done(cudaErrorInvalidDevice);
  HPO_CUDA_CALL(cudaGetDeviceProperties);
  *properties = hpo::emulator::DescribeDevice(device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  HPO_CUDA_CALL(cudaDeviceGetAttribute);
  if (!IsDevice(device)) return Done(cudaErrorInvalidDevice);
  *value = hpo::emulator::DeviceAttribute("cudaDeviceGetAttribute", attribute, device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (!IsDevice(device)) return Done(cudaErrorInvalidDevice);
  HPO_CUDA_CALL(cudaDeviceGetPCIBusId);
  std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0",
                static_cast<unsigned>(Machine::Get().CardOf(device) + 1));
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  HPO_CUDA_CALL(cudaDeviceCanAccessPeer);
  *can = 0;
  return cudaSuccess;
}

}  // extern "C"
