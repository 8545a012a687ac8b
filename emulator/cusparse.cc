// libcusparse: sparse matrices, and what depends on their sizes. How large a buffer is, is not
// published: each rule here is a choice.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "emulator/library_call.h"

namespace {

using hpo::emulator::ElementBytes;

struct SparseMatrix {
  int64_t rows;
  int64_t columns;
  int64_t nonzeros;
};

SparseMatrix& Matrix(const void* matrix) {
  return *static_cast<SparseMatrix*>(const_cast<void*>(matrix));
}

constexpr int64_t kIndexBytes = 4;

// Products of elements in a sparse product, where elements are spread evenly: which they are
// depends on values.
int64_t NumProducts(const SparseMatrix& a, const SparseMatrix& b) {
  const double each =
      static_cast<double>(b.nonzeros) / static_cast<double>(std::max<int64_t>(b.rows, 1));
  return static_cast<int64_t>(static_cast<double>(a.nonzeros) * each);
}

}  // namespace

extern "C" {

const char* cusparseGetErrorString(int) { return "emulated: an error of cuSPARSE"; }

int cusparseCreateCsr(void** matrix, int64_t rows, int64_t columns, int64_t nonzeros) {
  HPO_LIBRARY_CALL(cusparseCreateCsr);
  *matrix = new SparseMatrix{rows, columns, nonzeros};
  return 0;
}

int cusparseCreateCoo(void** matrix, int64_t rows, int64_t columns, int64_t nonzeros) {
  HPO_LIBRARY_CALL(cusparseCreateCoo);
  *matrix = new SparseMatrix{rows, columns, nonzeros};
  return 0;
}

int cusparseDestroySpMat(const void* matrix) {
  HPO_LIBRARY_CALL(cusparseDestroySpMat);
  delete static_cast<const SparseMatrix*>(matrix);
  return 0;
}

int cusparseSpMatGetSize(const void* matrix, int64_t* rows, int64_t* columns, int64_t* nonzeros) {
  HPO_LIBRARY_CALL(cusparseSpMatGetSize);
  *rows = Matrix(matrix).rows;
  *columns = Matrix(matrix).columns;
  *nonzeros = Matrix(matrix).nonzeros;
  return 0;
}

// An offset for each row.
int cusparseSpMM_bufferSize(void*, int, int, const void*, const void* a, const void*, const void*,
                            void*, int, int, size_t* bytes) {
  HPO_LIBRARY_CALL(cusparseSpMM_bufferSize);
  *bytes = static_cast<size_t>(kIndexBytes * (Matrix(a).rows + 1));
  return 0;
}

// An offset for each row.
int cusparseSpMV_bufferSize(void*, int, const void*, const void* a, const void*, const void*, void*,
                            int, int, size_t* bytes) {
  HPO_LIBRARY_CALL(cusparseSpMV_bufferSize);
  *bytes = static_cast<size_t>(kIndexBytes * (Matrix(a).rows + 1));
  return 0;
}

// None.
int cusparseSDDMM_bufferSize(void*, int, int, const void*, const void*, const void*, const void*,
                             void*, int, int, size_t* bytes) {
  HPO_LIBRARY_CALL(cusparseSDDMM_bufferSize);
  *bytes = 0;
  return 0;
}

// The order in which rows are solved: four integers for each element and each row.
int cusparseSpSV_bufferSize(void*, int, const void*, const void* a, const void*, void*, int, int,
                            void*, size_t* bytes) {
  HPO_LIBRARY_CALL(cusparseSpSV_bufferSize);
  *bytes = static_cast<size_t>(4 * kIndexBytes * (Matrix(a).nonzeros + Matrix(a).rows));
  return 0;
}

int cusparseSpSM_bufferSize(void*, int, int, const void*, const void* a, const void*, void*, int,
                            int, void*, size_t* bytes) {
  HPO_LIBRARY_CALL(cusparseSpSM_bufferSize);
  *bytes = static_cast<size_t>(4 * kIndexBytes * (Matrix(a).nonzeros + Matrix(a).rows));
  return 0;
}

// The number of products in each row.
int cusparseSpGEMM_workEstimation(void*, int, int, const void*, const void* a, const void*,
                                  const void*, void*, int, int, void*, size_t* bytes, void*) {
  HPO_LIBRARY_CALL(cusparseSpGEMM_workEstimation);
  *bytes = static_cast<size_t>(kIndexBytes * (Matrix(a).rows + 1));
  return 0;
}

// All products with their places.
int cusparseSpGEMM_compute(void*, int, int, const void*, const void* a, const void* b, const void*,
                           void* c, int type, int, void*, size_t* bytes, void*) {
  HPO_COMPUTE_CALL(cusparseSpGEMM_compute);
  const int64_t products = NumProducts(Matrix(a), Matrix(b));
  SparseMatrix& result = Matrix(c);
  result.nonzeros = std::min(products, result.rows * result.columns);
  *bytes = static_cast<size_t>(products * (2 * kIndexBytes + ElementBytes(type)));
  return 0;
}

}  // extern "C"
