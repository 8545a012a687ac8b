// libcublas: copies to the host, and workspaces. What a GPU computes reads as zero.
#include <cstddef>
#include <cstring>

#include "emulator/library_call.h"
#include "emulator/streams/gpu_dependence.h"

extern "C" {

// Every `step`th element of an array of the host.
int cublasGetVectorAsync(int length, int element_bytes, const void*, int, void* host, int step,
                         void*) {
  HPO_LIBRARY_CALL(cublasGetVectorAsync);
  for (int i = 0; i < length; ++i) {
    const ptrdiff_t offset = static_cast<ptrdiff_t>(i) * step * element_bytes;
    std::memset(static_cast<char*>(host) + offset, 0, static_cast<size_t>(element_bytes));
  }
  return 0;
}

int cublasSetWorkspace_v2(void*, void* workspace, size_t) {
  HPO_LIBRARY_CALL(cublasSetWorkspace_v2);
  hpo::emulator::NoteWorkspace(workspace);
  return 0;
}

// A matrix by columns, `leading` elements apart.
int cublasGetMatrixAsync(int rows, int columns, int element_bytes, const void*, int, void* host,
                         int leading, void*) {
  HPO_LIBRARY_CALL(cublasGetMatrixAsync);
  const size_t column_bytes = static_cast<size_t>(rows) * static_cast<size_t>(element_bytes);
  for (int column = 0; column < columns; ++column) {
    const ptrdiff_t offset = static_cast<ptrdiff_t>(column) * leading * element_bytes;
    std::memset(static_cast<char*>(host) + offset, 0, column_bytes);
  }
  return 0;
}

}  // extern "C"
