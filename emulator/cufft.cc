// libcufft: the work area of a plan. cuFFT's documentation ("Fourier Transform Setup") says that it
// is between one and eight times the elements of all transforms of a batch.
//   arrayfire issue 1443: fft2 of 100 x 100 i for i from 1 to 15: one time the elements in each.
// A length with a prime factor above 127 is transformed by Bluestein's algorithm (the
// documentation, "Accuracy and Performance"), that is by two transforms of a power of two of at
// least 2 n - 1. How much it takes is not published: two of that length are assumed.
#include <cstddef>
#include <cstdint>

#include "emulator/library_call.h"

namespace {

using hpo::emulator::ElementBytes;

constexpr int64_t kLargestFactor = 127;

bool IsComplex(int type) { return type >= 4 && (type < 10 || type == 15) && type != 8; }

bool NeedsBluestein(int64_t n) {
  for (int64_t factor = 2; factor <= kLargestFactor && n > 1; ++factor) {
    while (n % factor == 0) n /= factor;
  }
  return n > 1;
}

int64_t BluesteinElements(int64_t n) {
  int64_t power = 1;
  while (power < 2 * n - 1) power *= 2;
  return 2 * power;
}

}  // namespace

// Plans are made with their lengths in 64 bits, types of elements as cudaDataType.
extern "C" int cufftXtMakePlanMany(int, int rank, const long long* lengths, const long long*,
                                   long long, long long, int input, const long long*, long long,
                                   long long, int output, long long batch, size_t* work_bytes,
                                   int execution) {
  HPO_LIBRARY_CALL(cufftXtMakePlanMany);
  const bool is_real = !IsComplex(input) || !IsComplex(output);
  int64_t elements = batch;
  for (int i = 0; i < rank; ++i) {
    const int64_t n = lengths[i];
    const bool halved = is_real && i == rank - 1;
    elements *= NeedsBluestein(n) ? BluesteinElements(n) : (halved ? n / 2 + 1 : n);
  }
  *work_bytes = static_cast<size_t>(elements * ElementBytes(execution));
  return 0;
}
