// Batch normalisation. What it computes is silent (make_libraries.py); here is what it wants.
//
// Not known: cuDNN publishes no sizes. Zero is used for all: without a fused activation there is no
// mask to reserve, and partial sums of channels are small next to the activations.
#include <cstddef>
#include <string>

#include "emulator/cudnn/published_numbers.h"
#include "emulator/library_call.h"

namespace hpo::emulator::cudnn {
namespace {

constexpr int kWithoutActivation = 0;  // cudnnBatchNormOps_t

int WantNothing(const char* call, int operation, size_t* bytes) {
  if (operation != kWithoutActivation) {
    hpoEmulatedMissing((std::string(call) + " with a fused activation").c_str());
  }
  *bytes = 0;
  return kSuccess;
}

}  // namespace

extern "C" {

int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    void* /*handle*/, int /*mode*/, int operation, const void* /*x*/, const void* /*z*/,
    const void* /*y*/, const void* /*scale*/, const void* /*activation*/, size_t* bytes) {
  HPO_LIBRARY_CALL(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize);
  return WantNothing("cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize", operation, bytes);
}

int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void* /*handle*/, int /*mode*/,
                                                         int operation, const void* /*activation*/,
                                                         const void* /*x*/, size_t* bytes) {
  HPO_LIBRARY_CALL(cudnnGetBatchNormalizationTrainingExReserveSpaceSize);
  return WantNothing("cudnnGetBatchNormalizationTrainingExReserveSpaceSize", operation, bytes);
}

int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void* /*handle*/, int /*mode*/, int operation,
                                                      const void* /*x*/, const void* /*y*/,
                                                      const void* /*dy*/, const void* /*dz*/,
                                                      const void* /*dx*/, const void* /*scale*/,
                                                      const void* /*activation*/, size_t* bytes) {
  HPO_LIBRARY_CALL(cudnnGetBatchNormalizationBackwardExWorkspaceSize);
  return WantNothing("cudnnGetBatchNormalizationBackwardExWorkspaceSize", operation, bytes);
}

}  // extern "C"

}  // namespace hpo::emulator::cudnn
