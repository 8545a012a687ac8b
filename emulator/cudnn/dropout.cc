#include "emulator/cudnn/dropout.h"

#include <string>

#include "emulator/cudnn/current_gpu.h"
#include "emulator/cudnn/handles.h"
#include "emulator/cudnn/published_numbers.h"
#include "emulator/library_call.h"

namespace hpo::emulator::cudnn {
namespace {

constexpr size_t kStateBytes = 48;  // curandStateXORWOW_t

// What is set on it is never asked for.
struct DropoutDescriptor {};

// Ends the program, naming the call, if a state is given that is smaller than it has to be.
void CheckState(const char* call, const void* descriptor, const void* state, size_t bytes) {
  LiveObjects<DropoutDescriptor>().Find(call, descriptor);
  if (state != nullptr && bytes < DropoutStateBytes(CurrentGpu())) {
    hpoEmulatedMissing((std::string(call) + " with a state that is too small").c_str());
  }
}

}  // namespace

size_t DropoutStateBytes(const Card& card) {
  const int num_threads = card.num_multiprocessors * card.threads_per_multiprocessor;
  return static_cast<size_t>(num_threads) * kStateBytes;
}

extern "C" {

int cudnnCreateDropoutDescriptor(void** descriptor) {
  HPO_LIBRARY_CALL(cudnnCreateDropoutDescriptor);
  *descriptor = LiveObjects<DropoutDescriptor>().Create();
  return kSuccess;
}

int cudnnDestroyDropoutDescriptor(void* descriptor) {
  HPO_LIBRARY_CALL(cudnnDestroyDropoutDescriptor);
  LiveObjects<DropoutDescriptor>().Destroy("cudnnDestroyDropoutDescriptor", descriptor);
  return kSuccess;
}

int cudnnDropoutGetStatesSize(void* /*handle*/, size_t* bytes) {
  HPO_LIBRARY_CALL(cudnnDropoutGetStatesSize);
  *bytes = DropoutStateBytes(CurrentGpu());
  return kSuccess;
}

int cudnnSetDropoutDescriptor(void* descriptor, void* /*handle*/, float /*dropout*/, void* state,
                              size_t bytes, unsigned long long /*seed*/) {
  HPO_COMPUTE_CALL(cudnnSetDropoutDescriptor);
  CheckState("cudnnSetDropoutDescriptor", descriptor, state, bytes);
  return kSuccess;
}

int cudnnRestoreDropoutDescriptor(void* descriptor, void* /*handle*/, float /*dropout*/,
                                  void* state, size_t bytes, unsigned long long /*seed*/) {
  HPO_COMPUTE_CALL(cudnnRestoreDropoutDescriptor);
  CheckState("cudnnRestoreDropoutDescriptor", descriptor, state, bytes);
  return kSuccess;
}

}  // extern "C"

}  // namespace hpo::emulator::cudnn
