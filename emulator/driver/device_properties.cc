#include "emulator/driver/device_properties.h"

#include <cuda.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "emulator/machine.h"

namespace hpo::emulator {
namespace {

constexpr int kMaxThreadsPerBlock = 1024;
constexpr int kMaxGridX = 0x7fffffff;
constexpr int kMaxGridYZ = 65535;
constexpr int kNumRegisters = 65536;

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

// What the driver alone is asked about. Memory of other processes and machines is not emulated.
std::optional<int> DriverAttribute(const Card& card, int attribute) {
  switch (attribute) {
    // In kHz and bits; CUDA 13's properties do not all have them.
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return card.clock_mhz * 1000;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return card.memory_clock_mhz * 1000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return card.memory_bus_bits;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
      return 0;
    default:
      return std::nullopt;
  }
}

// Nothing for an attribute whose answer nobody has thought about yet.
std::optional<int> KnownAttribute(int device, int attribute) {
  const cudaDeviceProp card = DescribeDevice(device);
  const auto bytes = [](size_t count) { return static_cast<int>(count); };
  const std::pair<int, int> known[] = {
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
      {cudaDevAttrConcurrentKernels, card.concurrentKernels},
      {cudaDevAttrAsyncEngineCount, card.asyncEngineCount},
      {cudaDevAttrCanMapHostMemory, card.canMapHostMemory},
      {cudaDevAttrManagedMemory, card.managedMemory},
      {cudaDevAttrTotalConstantMemory, bytes(card.totalConstMem)},
      {cudaDevAttrPciBusId, card.pciBusID},
      {cudaDevAttrPciDeviceId, 0},
      {cudaDevAttrPciDomainId, 0},
      {cudaDevAttrIntegrated, 0},
      {cudaDevAttrComputeMode, cudaComputeModeDefault},
  };
  for (const auto& [name, answer] : known) {
    if (name == attribute) return answer;
  }
  return DriverAttribute(Machine::Get().card(device), attribute);
}

}  // namespace

cudaDeviceProp DescribeDevice(int device) {
  const Machine& machine = Machine::Get();
  const Card& card = machine.card(device);
  cudaDeviceProp properties = {};
  std::snprintf(properties.name, sizeof properties.name, "%s", ShownName(card).c_str());
  const auto uuid = CardUuid(machine.settings(), machine.CardOf(device));
  std::memcpy(properties.uuid.bytes, uuid.data(), uuid.size());
  properties.totalGlobalMem = machine.TotalBytes(device);
  properties.major = card.capability / 10;
  properties.minor = card.capability % 10;
  properties.multiProcessorCount = card.num_multiprocessors;
  properties.l2CacheSize = card.l2_kib << 10;
  properties.memoryBusWidth = card.memory_bus_bits;
  properties.pciBusID = machine.CardOf(device) + 1;
  DescribeLimits(card, properties);
  DescribeAbilities(properties);
  return properties;
}

int DeviceAttribute(const char* call, int attribute, int device) {
  if (const auto found = KnownAttribute(device, attribute)) return *found;
  hpoEmulatedMissing((std::string(call) + "(" + std::to_string(attribute) + ")").c_str());
}

}  // namespace hpo::emulator
