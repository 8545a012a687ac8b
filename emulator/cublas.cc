// libcublas: the calls that hand something back. Those that compute are generated.
#include <cstddef>

#include "emulator/gpu_dependence.h"
#include "emulator/library_call.h"

extern "C" {

int cublasCreate_v2(void** handle) {
  HPO_LIBRARY_CALL(cublasCreate_v2);
  *handle = new char;
  return 0;
}

int cublasDestroy_v2(void* handle) {
  HPO_LIBRARY_CALL(cublasDestroy_v2);
  delete static_cast<char*>(handle);
  return 0;
}

int cublasSetWorkspace_v2(void*, void* workspace, size_t) {
  HPO_LIBRARY_CALL(cublasSetWorkspace_v2);
  hpo::emulator::NoteWorkspace(workspace);
  return 0;
}

int cublasGetMathMode(void*, int* mode) {
  HPO_LIBRARY_CALL(cublasGetMathMode);
  *mode = 0;
  return 0;
}

int cublasGetPointerMode_v2(void*, int* mode) {
  HPO_LIBRARY_CALL(cublasGetPointerMode_v2);
  *mode = 0;
  return 0;
}

}  // extern "C"
