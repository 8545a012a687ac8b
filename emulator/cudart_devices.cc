// libcudart: which cards there are and what they are like.
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "emulator/cudart.h"

namespace {

using hpo::emulator::Card;
using hpo::emulator::CurrentDevice;
using hpo::emulator::Done;
using hpo::emulator::Machine;

constexpr int kMaxThreadsPerBlock = 1024;
constexpr int kMaxGridX = 0x7fffffff;
constexpr int kMaxGridYZ = 65535;
constexpr int kNumRegisters = 65536;

bool IsDevice(int device) { return device >= 0 && device < Machine::Get().num_devices(); }

void DescribeLimits(const Card& card, cudaDeviceProp& properties) {
  properties.sharedMemPerBlock = size_t{48} << 10;
  properties.sharedMemPerBlockOptin = static_cast<size_t>(card.shared_kib_per_block) << 10;
  properties.sharedMemPerMultiprocessor = static_cast<size_t>(card.shared_kib_per_multiprocessor)
                                          << 10;
  properties.reservedSharedMemPerBlock = static_cast<size_t>(card.reserved_shared_kib) << 10;
  properties.regsPerBlock = properties.regsPerMultiprocessor = kNumRegisters;
  properties.warpSize = 32;
  properties.memPitch = 0x7fffffff;
  properties.maxThreadsPerBlock = kMaxThreadsPerBlock;
  properties.maxThreadsDim[0] = properties.maxThreadsDim[1] = 1024;
  properties.maxThreadsDim[2] = 64;
  properties.maxGridSize[0] = kMaxGridX;
  properties.maxGridSize[1] = properties.maxGridSize[2] = kMaxGridYZ;
  properties.totalConstMem = 65536;
  properties.textureAlignment = 512;
  properties.texturePitchAlignment = 32;
  properties.maxThreadsPerMultiProcessor = card.threads_per_multiprocessor;
  properties.maxBlocksPerMultiProcessor = 32;
}

// What kernels and libraries may rely on; the same on every card of the table.
void DescribeAbilities(cudaDeviceProp& properties) {
  properties.canMapHostMemory = 1;
  properties.concurrentKernels = 1;
  properties.asyncEngineCount = 2;
  properties.unifiedAddressing = 1;
  properties.streamPrioritiesSupported = 1;
  properties.managedMemory = 1;
  properties.cooperativeLaunch = 1;
  properties.hostRegisterSupported = 1;
  properties.memoryPoolsSupported = 1;
}

// Clocks in kHz and the bus in bits, which CUDA 13's properties do not all have.
bool FindSpeed(const Card& card, cudaDeviceAttr attribute, int& value) {
  if (attribute == cudaDevAttrClockRate) {
    value = card.clock_mhz * 1000;
  } else if (attribute == cudaDevAttrMemoryClockRate) {
    value = card.memory_clock_mhz * 1000;
  } else if (attribute == cudaDevAttrGlobalMemoryBusWidth) {
    value = card.memory_bus_bits;
  } else {
    return false;
  }
  return true;
}

// False for an attribute whose answer nobody has thought about yet.
bool FindAttribute(const cudaDeviceProp& card, cudaDeviceAttr attribute, int& value) {
  const auto bytes = [](size_t count) { return static_cast<int>(count); };
  const std::pair<cudaDeviceAttr, int> known[] = {
      {cudaDevAttrMaxThreadsPerBlock, card.maxThreadsPerBlock},
      {cudaDevAttrMaxBlockDimX, card.maxThreadsDim[0]},
      {cudaDevAttrMaxBlockDimY, card.maxThreadsDim[1]},
      {cudaDevAttrMaxBlockDimZ, card.maxThreadsDim[2]},
      {cudaDevAttrMaxGridDimX, card.maxGridSize[0]},
      {cudaDevAttrMaxGridDimY, card.maxGridSize[1]},
      {cudaDevAttrMaxGridDimZ, card.maxGridSize[2]},
      {cudaDevAttrMaxSharedMemoryPerBlock, bytes(card.sharedMemPerBlock)},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, bytes(card.sharedMemPerBlockOptin)},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, bytes(card.sharedMemPerMultiprocessor)},
      {cudaDevAttrReservedSharedMemoryPerBlock, bytes(card.reservedSharedMemPerBlock)},
      {cudaDevAttrWarpSize, card.warpSize},
      {cudaDevAttrMaxRegistersPerBlock, card.regsPerBlock},
      {cudaDevAttrMaxRegistersPerMultiprocessor, card.regsPerMultiprocessor},
      {cudaDevAttrMultiProcessorCount, card.multiProcessorCount},
      {cudaDevAttrMaxThreadsPerMultiProcessor, card.maxThreadsPerMultiProcessor},
      {cudaDevAttrMaxBlocksPerMultiprocessor, card.maxBlocksPerMultiProcessor},
      {cudaDevAttrComputeCapabilityMajor, card.major},
      {cudaDevAttrComputeCapabilityMinor, card.minor},
      {cudaDevAttrL2CacheSize, card.l2CacheSize},
      {cudaDevAttrUnifiedAddressing, card.unifiedAddressing},
      {cudaDevAttrMemoryPoolsSupported, card.memoryPoolsSupported},
      {cudaDevAttrCooperativeLaunch, card.cooperativeLaunch},
  };
  for (const auto& [name, answer] : known) {
    if (name != attribute) continue;
    value = answer;
    return true;
  }
  return false;
}

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
  const Machine& machine = Machine::Get();
  const Card& card = machine.card(device);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "%s",
                hpo::emulator::ShownName(card).c_str());
  const auto uuid = hpo::emulator::CardUuid(machine.settings(), machine.CardOf(device));
  std::memcpy(properties->uuid.bytes, uuid.data(), uuid.size());
  properties->totalGlobalMem = machine.TotalBytes(device);
  properties->major = card.capability / 10;
  properties->minor = card.capability % 10;
  properties->multiProcessorCount = card.num_multiprocessors;
  properties->l2CacheSize = card.l2_kib << 10;
  properties->memoryBusWidth = card.memory_bus_bits;
  properties->pciBusID = machine.CardOf(device) + 1;
  DescribeLimits(card, *properties);
  DescribeAbilities(*properties);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  HPO_CUDA_CALL(cudaDeviceGetAttribute);
  cudaDeviceProp properties;
  const cudaError_t code = cudaGetDeviceProperties(&properties, device);
  if (code != cudaSuccess) return code;
  if (!FindAttribute(properties, attribute, *value) &&
      !FindSpeed(Machine::Get().card(device), attribute, *value)) {
    const std::string call = "cudaDeviceGetAttribute(" + std::to_string(attribute) + ")";
    hpoEmulatedMissing(call.c_str());
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (!IsDevice(device)) return Done(cudaErrorInvalidDevice);
  HPO_CUDA_CALL(cudaDeviceGetPCIBusId);
  std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0",
                static_cast<unsigned>(Machine::Get().CardOf(device) + 1));
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  HPO_CUDA_CALL(cudaDeviceSynchronize);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  HPO_CUDA_CALL(cudaDeviceCanAccessPeer);
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  HPO_CUDA_CALL(cudaDeviceGetStreamPriorityRange);
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}

}  // extern "C"
