// Connectionist temporal classification. What it computes is silent (make_libraries.py).
#include <algorithm>
#include <cstddef>

#include "emulator/cudnn/descriptors.h"
#include "emulator/cudnn/handles.h"
#include "emulator/cudnn/published_numbers.h"
#include "emulator/library_call.h"

namespace hpo::emulator::cudnn {
namespace {

struct CtcLossDescriptor {
  int max_label_length = 0;
};

// Not known: cuDNN publishes no size. Used instead: what PyTorch's own kernel keeps, the forward
// variables of 32 bits, for each step and sequence one before, after and at each label
// (ATen/native/cuda/LossCTC.cu, log_alpha).
size_t WorkspaceBytes(const TensorDescriptor& probabilities, int max_label_length) {
  const auto steps = static_cast<size_t>(probabilities.sizes[0]);
  const auto batch = static_cast<size_t>(probabilities.sizes[1]);
  return steps * batch * (2 * static_cast<size_t>(max_label_length) + 1) * sizeof(float);
}

const TensorDescriptor& FindProbabilities(const char* call, const void* descriptor) {
  const TensorDescriptor& found = LiveObjects<TensorDescriptor>().Find(call, descriptor);
  if (found.sizes.size() < 2) hpoEmulatedMissing(call);
  return found;
}

}  // namespace

extern "C" {

int cudnnCreateCTCLossDescriptor(void** descriptor) {
  HPO_LIBRARY_CALL(cudnnCreateCTCLossDescriptor);
  *descriptor = LiveObjects<CtcLossDescriptor>().Create();
  return kSuccess;
}

int cudnnDestroyCTCLossDescriptor(void* descriptor) {
  HPO_LIBRARY_CALL(cudnnDestroyCTCLossDescriptor);
  LiveObjects<CtcLossDescriptor>().Destroy("cudnnDestroyCTCLossDescriptor", descriptor);
  return kSuccess;
}

int cudnnSetCTCLossDescriptorEx(void* descriptor, int /*data_type*/, int /*normalisation*/,
                                int /*gradient*/) {
  HPO_LIBRARY_CALL(cudnnSetCTCLossDescriptorEx);
  LiveObjects<CtcLossDescriptor>().Find("cudnnSetCTCLossDescriptorEx", descriptor) = {};
  return kSuccess;
}

int cudnnSetCTCLossDescriptor_v9(void* descriptor, int /*data_type*/, int /*normalisation*/,
                                 int /*gradient*/, int max_label_length) {
  HPO_LIBRARY_CALL(cudnnSetCTCLossDescriptor_v9);
  LiveObjects<CtcLossDescriptor>().Find("cudnnSetCTCLossDescriptor_v9",
                                        descriptor) = {.max_label_length = max_label_length};
  return kSuccess;
}

// `label_lengths`: of each sequence, in host memory.
int cudnnGetCTCLossWorkspaceSize(void* /*handle*/, const void* probabilities,
                                 const void* /*gradients*/, const int* /*labels*/,
                                 const int* label_lengths, const int* /*input_lengths*/,
                                 int /*algorithm*/, void* /*descriptor*/, size_t* bytes) {
  HPO_LIBRARY_CALL(cudnnGetCTCLossWorkspaceSize);
  const TensorDescriptor& tensor = FindProbabilities("cudnnGetCTCLossWorkspaceSize", probabilities);
  *bytes =
      WorkspaceBytes(tensor, *std::max_element(label_lengths, label_lengths + tensor.sizes[1]));
  return kSuccess;
}

int cudnnGetCTCLossWorkspaceSize_v8(void* /*handle*/, int /*algorithm*/, void* descriptor,
                                    const void* probabilities, const void* /*gradients*/,
                                    size_t* bytes) {
  HPO_LIBRARY_CALL(cudnnGetCTCLossWorkspaceSize_v8);
  const auto& loss =
      LiveObjects<CtcLossDescriptor>().Find("cudnnGetCTCLossWorkspaceSize_v8", descriptor);
  *bytes = WorkspaceBytes(FindProbabilities("cudnnGetCTCLossWorkspaceSize_v8", probabilities),
                          loss.max_label_length);
  return kSuccess;
}

}  // extern "C"

}  // namespace hpo::emulator::cudnn
