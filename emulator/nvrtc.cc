// libnvrtc: kernels that torch compiles as it runs (complex and special functions).
#include "emulator/library_call.h"

extern "C" {

const char* nvrtcGetErrorString(int) { return "emulated: an error of NVRTC"; }

int nvrtcDestroyProgram(void** program) {
  HPO_LIBRARY_CALL(nvrtcDestroyProgram);
  delete static_cast<char*>(*program);
  *program = nullptr;
  return 0;
}

// A kernel is called as the caller named it.
int nvrtcGetLoweredName(void*, const char* expression, const char** name) {
  HPO_LIBRARY_CALL(nvrtcGetLoweredName);
  *name = expression;
  return 0;
}

}  // extern "C"
