// Lets FakeTensors be on a CUDA device where there is none: they run no kernel, but torch asks the
// runtime for the device all the same. Preloaded by scripts/reference/model_traces.py; its answers
// are those of a device of compute capability 8.0.
#include <driver_types.h>
#include <string.h>

int cudaGetDeviceCount(int* count) { return *count = 1, 0; }
int cudaGetDevice(int* device) { return *device = 0, 0; }
int cudaSetDevice(int device) { return device; }
int cudaGetLastError(void) { return 0; }
int cudaPeekAtLastError(void) { return 0; }
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return *least = *greatest = 0; }
int cudaStreamIsCapturing(void* stream, int* status) { return (void)stream, *status = 0; }
int cudaRuntimeGetVersion(int* version) { return *version = 13000, 0; }
int cudaDriverGetVersion(int* version) { return *version = 13000, 0; }

int cudaGetDeviceProperties(struct cudaDeviceProp* properties, int device) {
  memset(properties, 0, sizeof *properties);
  strcpy(properties->name, "stand-in");
  properties->major = 8;
  properties->totalGlobalMem = 80ull << 30;
  properties->multiProcessorCount = 108;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = 163 << 10;
  properties->sharedMemPerMultiprocessor = 164 << 10;
  return device;
}

// No context is active, so that autograd leaves the device's streams alone.
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return (void)device, *flags = 0, *active = 0;
}

// The rest of the driver is looked up, never called.
#define UNUSED(name) \
  int name(void) { return 100; }
UNUSED(cuCtxGetCurrent)
UNUSED(cuCtxSetCurrent)
UNUSED(cuDeviceGet)
UNUSED(cuDeviceGetAttribute)
UNUSED(cuDevicePrimaryCtxRetain)
UNUSED(cuFuncGetAttribute)
UNUSED(cuFuncSetAttribute)
UNUSED(cuFuncSetCacheConfig)
UNUSED(cuGetErrorString)
UNUSED(cuLaunchCooperativeKernel)
UNUSED(cuLaunchKernel)
UNUSED(cuLinkAddData_v2)
UNUSED(cuLinkComplete)
UNUSED(cuLinkCreate_v2)
UNUSED(cuModuleGetFunction)
UNUSED(cuModuleLoad)
UNUSED(cuModuleLoadData)
UNUSED(cuModuleLoadDataEx)
UNUSED(cuModuleUnload)
UNUSED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
UNUSED(cuPointerGetAttribute)
UNUSED(cuTensorMapEncodeTiled)
