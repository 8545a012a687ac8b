// libcudart: kernels. Their shape is checked; nothing runs.
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/cudart/cudart.h"
#include "emulator/streams/gpu_dependence.h"
#include "emulator/streams/launches.h"

namespace {

using hpo::emulator::Done;
using hpo::emulator::EnqueueLaunch;
using hpo::emulator::LaunchShape;
using hpo::emulator::SharedBytesPerBlock;

struct Configuration {
  dim3 grid;
  dim3 block;
  size_t shared;
  cudaStream_t stream;
};

thread_local std::vector<Configuration> t_configurations;

// Names of kernels, kept where there is a log to write them to.
struct KernelNames {
  std::mutex mutex;
  std::unordered_map<const void*, std::string> names;
};

KernelNames& Names() {
  static KernelNames* const names = new KernelNames;
  return *names;
}

std::string KernelName(const void* function) {
  const std::lock_guard<std::mutex> lock(Names().mutex);
  const auto found = Names().names.find(function);
  return found == Names().names.end() ? "?" : found->second;
}

LaunchShape Shape(dim3 shape) { return {shape.x, shape.y, shape.z}; }

}  // namespace

extern "C" {

// How nvcc's code tells the runtime of its kernels, before main. What it hands over is not looked
// into.
void** __cudaRegisterFatBinary(void* binary) { return new void*(binary); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void** handle) { delete handle; }
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}

void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  hpo::emulator::NoteKernel(function, name);
  static const bool wanted = std::getenv("HPO_EMULATED_LOG") != nullptr;
  if (!wanted) return;
  const std::lock_guard<std::mutex> lock(Names().mutex);
  Names().names[function] = name;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
  t_configurations.push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  const Configuration shape = t_configurations.back();
  t_configurations.pop_back();
  *grid = shape.grid;
  *block = shape.block;
  *shared = shape.shared;
  *static_cast<cudaStream_t*>(stream) = shape.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

// Whichever way a kernel is launched, it counts as cudaLaunchKernel.
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void**, size_t shared,
                             cudaStream_t stream) {
  HPO_CUDA_CALL(cudaLaunchKernel);
  hpo::emulator::NoteLaunch(function, hpo::emulator::CurrentDevice(), grid.x, grid.y,
                            block.x * block.y * block.z);
  return Done(EnqueueLaunch({.kernel = KernelName(function),
                             .grid = Shape(grid),
                             .block = Shape(block),
                             .shared_bytes = shared,
                             .stream = stream}));
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, arguments, shared,
                          stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(function, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  return cudaLaunchKernel(function, config->gridDim, config->blockDim, arguments,
                          config->dynamicSmemBytes, config->stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  HPO_CUDA_CALL(cudaFuncGetAttributes);
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  // CUB looks its kernels up by this: it must be one of the build's.
  attributes->ptxVersion = attributes->binaryVersion = hpo::emulator::KernelArchitecture();
  attributes->maxDynamicSharedSizeBytes = 48 << 10;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  HPO_CUDA_CALL(cudaFuncSetAttribute);
  const bool too_much = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize &&
                        static_cast<size_t>(value) > SharedBytesPerBlock();
  return too_much ? Done(cudaErrorInvalidValue) : cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* num_blocks, const void*,
                                                                   int block_size, size_t shared,
                                                                   unsigned int) {
  HPO_CUDA_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
  *num_blocks = hpo::emulator::BlocksPerMultiprocessor(block_size, shared);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* num_blocks, const void* function,
                                                          int block_size, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(num_blocks, function, block_size,
                                                                shared, 0);
}

}  // extern "C"
