// libcublasLt: descriptors are handles without content; one algorithm is always found.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulator/library_call.h"

namespace {

constexpr size_t kVersion = 130100;
// What one answer of the heuristic takes in the caller's array.
constexpr size_t kAnswerBytes = 96;

int NewHandle(void** handle) {
  *handle = new char;
  return 0;
}

int DeleteHandle(void* handle) {
  delete static_cast<char*>(handle);
  return 0;
}

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return kVersion; }

int cublasLtMatmulDescCreate(void** description, int, int) {
  HPO_LIBRARY_CALL(cublasLtMatmulDescCreate);
  return NewHandle(description);
}

int cublasLtMatmulDescDestroy(void* description) {
  HPO_LIBRARY_CALL(cublasLtMatmulDescDestroy);
  return DeleteHandle(description);
}

int cublasLtMatrixLayoutCreate(void** layout, int, uint64_t, uint64_t, int64_t) {
  HPO_LIBRARY_CALL(cublasLtMatrixLayoutCreate);
  return NewHandle(layout);
}

int cublasLtMatrixLayoutDestroy(void* layout) {
  HPO_LIBRARY_CALL(cublasLtMatrixLayoutDestroy);
  return DeleteHandle(layout);
}

int cublasLtMatmulPreferenceCreate(void** preference) {
  HPO_LIBRARY_CALL(cublasLtMatmulPreferenceCreate);
  return NewHandle(preference);
}

int cublasLtMatmulPreferenceDestroy(void* preference) {
  HPO_LIBRARY_CALL(cublasLtMatmulPreferenceDestroy);
  return DeleteHandle(preference);
}

// The answer is all zeros: success, no workspace.
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int num_wanted,
                                   void* answers, int* num_found) {
  HPO_LIBRARY_CALL(cublasLtMatmulAlgoGetHeuristic);
  std::memset(answers, 0, kAnswerBytes * static_cast<size_t>(num_wanted));
  *num_found = 1;
  return 0;
}

}  // extern "C"
