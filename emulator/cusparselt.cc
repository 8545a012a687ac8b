// libcusparseLt: matrices that leave every other pair of elements out. Their descriptions are
// memory of the caller.
#include <cstddef>
#include <cstdint>

#include "emulator/library_call.h"

namespace {

using hpo::emulator::ElementBytes;

struct Description {
  int64_t elements;
  int64_t element_bytes;
};

}  // namespace

extern "C" {

int cusparseLtStructuredDescriptorInit(const void*, void* matrix, int64_t rows, int64_t columns,
                                       int64_t, uint32_t, int type) {
  HPO_LIBRARY_CALL(cusparseLtStructuredDescriptorInit);
  *static_cast<Description*>(matrix) = {rows * columns, ElementBytes(type)};
  return 0;
}

int cusparseLtDenseDescriptorInit(const void*, void* matrix, int64_t rows, int64_t columns, int64_t,
                                  uint32_t, int type) {
  HPO_LIBRARY_CALL(cusparseLtDenseDescriptorInit);
  *static_cast<Description*>(matrix) = {rows * columns, ElementBytes(type)};
  return 0;
}

// Half of the elements, and two bits for each that is kept: 9/16 of a matrix of 16 bits, 10/16 of
// one of 8 bits, as torch counts it. The buffer is not published: none.
int cusparseLtSpMMACompressedSize2(const void*, const void* matrix, size_t* bytes,
                                   size_t* buffer_bytes) {
  HPO_LIBRARY_CALL(cusparseLtSpMMACompressedSize2);
  const Description& description = *static_cast<const Description*>(matrix);
  *bytes = static_cast<size_t>(description.elements * description.element_bytes / 2 +
                               description.elements / 8);
  *buffer_bytes = 0;
  return 0;
}

}  // extern "C"
