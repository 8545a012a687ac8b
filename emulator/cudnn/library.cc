// libcudnn: its version, its errors and its handles.
#include <cstddef>
#include <cstdio>

#include "emulator/cudnn/handles.h"
#include "emulator/cudnn/published_numbers.h"
#include "emulator/library_call.h"

namespace hpo::emulator::cudnn {
namespace {

const Versions& Reported() { return Machine::Get().settings().versions; }

struct Library {
  void* stream = nullptr;
};

// Statuses by which programs tell errors apart.
const char* StatusName(int status) {
  switch (status) {
    case 0:
      return "CUDNN_STATUS_SUCCESS";
    case 1001:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case 2000:
      return "CUDNN_STATUS_BAD_PARAM";
    case 3000:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case 4000:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    case 4003:
      return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    case 4004:
      return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    case 5000:
    case kLibraryExecutionFailed:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "emulated: an error of cuDNN";
  }
}

Library& FindLibrary(const char* call, const void* handle) {
  return LiveObjects<Library>().Find(call, handle);
}

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return static_cast<size_t>(Reported().cudnn); }

size_t cudnnGetCudartVersion() { return static_cast<size_t>(Reported().cuda); }

// `property`: 0 the major number of the version, 1 the minor one, 2 the patch
// (libraryPropertyType).
int cudnnGetProperty(int property, int* value) {
  HPO_LIBRARY_CALL(cudnnGetProperty);
  const auto version = static_cast<int>(Reported().cudnn);
  const int parts[] = {version / 10000, version / 100 % 100, version % 100};
  if (property < 0 || property > 2) hpoEmulatedMissing("cudnnGetProperty of another property");
  *value = parts[property];
  return kSuccess;
}

int cudnnCreate(void** handle) {
  HPO_LIBRARY_CALL(cudnnCreate);
  *handle = LiveObjects<Library>().Create();
  return kSuccess;
}

int cudnnDestroy(void* handle) {
  HPO_LIBRARY_CALL(cudnnDestroy);
  LiveObjects<Library>().Destroy("cudnnDestroy", handle);
  return kSuccess;
}

int cudnnSetStream(void* handle, void* stream) {
  HPO_LIBRARY_CALL(cudnnSetStream);
  FindLibrary("cudnnSetStream", handle).stream = stream;
  return kSuccess;
}

int cudnnGetStream(void* handle, void** stream) {
  HPO_LIBRARY_CALL(cudnnGetStream);
  *stream = FindLibrary("cudnnGetStream", handle).stream;
  return kSuccess;
}

const char* cudnnGetErrorString(int status) { return StatusName(status); }

void cudnnGetLastErrorString(char* message, size_t room) {
  if (room > 0) std::snprintf(message, room, "emulated: an error of cuDNN");
}

}  // extern "C"

}  // namespace hpo::emulator::cudnn
