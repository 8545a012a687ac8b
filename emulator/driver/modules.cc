// libcuda: kernels that a compiler, such as Triton, loads by itself. Their code is not looked into.
#include <cstring>
#include <string>

#include "emulator/driver/calls.h"
#include "emulator/streams/launches.h"
#include "emulator/streams/streams.h"

namespace {

using hpo::emulator::EnqueueLaunch;
using hpo::emulator::Launch;
using hpo::emulator::LaunchShape;
using hpo::emulator::NodeKind;
using hpo::emulator::Streams;

// Behind a CUmodule and a CUfunction.
struct Module {};
struct Function {
  std::string name;
};

CUresult NewModule(CUmodule* module) {
  *module = reinterpret_cast<CUmodule>(new Module);
  return CUDA_SUCCESS;
}

// The driver knows no invalid configuration apart from an invalid value.
CUresult LaunchFunction(CUfunction function, LaunchShape grid, LaunchShape block, size_t shared,
                        CUstream stream) {
  const int code = EnqueueLaunch({.kernel = reinterpret_cast<Function*>(function)->name,
                                  .grid = grid,
                                  .block = block,
                                  .shared_bytes = shared,
                                  .stream = stream});
  if (code == hpo::emulator::kLaunchInvalidConfiguration) return CUDA_ERROR_INVALID_VALUE;
  return static_cast<CUresult>(code);
}

}  // namespace

extern "C" {

CUresult cuModuleLoad(CUmodule* module, const char*) {
  HPO_DRIVER_CALL(cuModuleLoad);
  return NewModule(module);
}

CUresult cuModuleLoadData(CUmodule* module, const void*) {
  HPO_DRIVER_CALL(cuModuleLoadData);
  return NewModule(module);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void*, unsigned int, CUjit_option*, void**) {
  HPO_DRIVER_CALL(cuModuleLoadDataEx);
  return NewModule(module);
}

// Functions stay: a program may have kept one.
CUresult cuModuleUnload(CUmodule module) {
  HPO_DRIVER_CALL(cuModuleUnload);
  delete reinterpret_cast<Module*>(module);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  HPO_DRIVER_CALL(cuModuleGetFunction);
  *function = reinterpret_cast<CUfunction>(new Function{.name = name});
  return CUDA_SUCCESS;
}

// Registers and static shared memory of a kernel are not known: as in the runtime, 32 and none.
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  HPO_DRIVER_CALL(cuFuncGetAttribute);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      hpoEmulatedMissing(("cuFuncGetAttribute(" + std::to_string(attribute) + ")").c_str());
  }
}

CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute attribute, int value) {
  HPO_DRIVER_CALL(cuFuncSetAttribute);
  const bool too_much = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
                        static_cast<size_t>(value) > hpo::emulator::SharedBytesPerBlock();
  return too_much ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) {
  HPO_DRIVER_CALL(cuFuncSetCacheConfig);
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared, CUstream stream, void**,
                        void**) {
  HPO_DRIVER_CALL(cuLaunchKernel);
  return LaunchFunction(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared,
                        stream);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared, CUstream stream,
                                   void**) {
  HPO_DRIVER_CALL(cuLaunchCooperativeKernel);
  return LaunchFunction(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared,
                        stream);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void**, void**) {
  HPO_DRIVER_CALL(cuLaunchKernelEx);
  return LaunchFunction(function, {config->gridDimX, config->gridDimY, config->gridDimZ},
                        {config->blockDimX, config->blockDimY, config->blockDimZ},
                        config->sharedMemBytes, config->hStream);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  HPO_DRIVER_CALL(cuLaunchHostFunc);
  return static_cast<CUresult>(Streams::Get().Enqueue(stream, NodeKind::kHostFunction,
                                                      [function, data] { function(data); }));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* num_blocks, CUfunction, int block_size,
                                                     size_t shared) {
  HPO_DRIVER_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  *num_blocks = hpo::emulator::BlocksPerMultiprocessor(block_size, shared);
  return CUDA_SUCCESS;
}

// A descriptor is opaque, and only kernels read it.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank,
                                void* address, const cuuint64_t*, const cuuint64_t*,
                                const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                CUtensorMapSwizzle, CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill) {
  HPO_DRIVER_CALL(cuTensorMapEncodeTiled);
  const bool is_aligned = reinterpret_cast<uintptr_t>(address) % 16 == 0;
  if (rank == 0 || rank > 5 || !is_aligned) return CUDA_ERROR_INVALID_VALUE;
  std::memset(map, 0, sizeof *map);
  return CUDA_SUCCESS;
}

}  // extern "C"
