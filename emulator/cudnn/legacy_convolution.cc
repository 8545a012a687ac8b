// Convolutions by the calls before the graph API, which torch makes when
// TORCH_CUDNN_V8_API_DISABLED=1 is set. What they compute is silent (make_libraries.py).
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/cudnn/convolution_workspace.h"
#include "emulator/cudnn/current_gpu.h"
#include "emulator/cudnn/descriptors.h"
#include "emulator/cudnn/handles.h"
#include "emulator/cudnn/published_numbers.h"
#include "emulator/library_call.h"

namespace hpo::emulator::cudnn {
namespace {

// What is set on it changes no size.
struct ConvolutionDescriptor {};

// One answer of a search (cudnnConvolutionFwdAlgoPerf_t and its like).
struct SearchAnswer {
  int algorithm;
  int status;
  float milliseconds;
  size_t workspace_bytes;
  int determinism;
  int math_type;
  int reserved[3];
};

constexpr int kAlgorithm = 1;  // an implicit matrix product, in all three directions
constexpr int kDeterministic = 1;
constexpr int kTensorCoresAllowed = 1;

std::vector<int64_t> Wide(const std::vector<int>& values) { return {values.begin(), values.end()}; }

ConvolutionTensor ReadTensor(const char* call, const void* descriptor) {
  const auto& tensor = LiveObjects<TensorDescriptor>().Find(call, descriptor);
  return MakeConvolutionTensor(tensor.data_type, Wide(tensor.sizes), Wide(tensor.strides));
}

ConvolutionTensor ReadFilter(const char* call, const void* descriptor) {
  const auto& filter = LiveObjects<FilterDescriptor>().Find(call, descriptor);
  ConvolutionTensor tensor = MakeConvolutionTensor(filter.data_type, Wide(filter.sizes),
                                                   Wide(PackedStrides(filter.sizes)));
  if (filter.format == kChannelsLast) tensor.strides[1] = 1;
  return tensor;
}

// Of a call whose inputs are a tensor and the filter, or two tensors with the filter as the output.
size_t WorkspaceBytes(const char* call, const void* tensor, const void* other, const void* filter) {
  const ConvolutionTensor weights = ReadFilter(call, filter);
  const Convolution convolution{
      .inputs = {ReadTensor(call, tensor), other == nullptr ? weights : ReadTensor(call, other)},
      .channels_per_group = weights.sizes[1]};
  return static_cast<size_t>(ConvolutionWorkspaceBytes(convolution, CurrentGpu().capability));
}

int AnswerSearch(size_t workspace_bytes, int room, int* count, SearchAnswer* answers) {
  *count = room > 0 ? 1 : 0;
  if (room > 0) {
    *answers = {.algorithm = kAlgorithm,
                .status = kSuccess,
                .milliseconds = 1.0F,
                .workspace_bytes = workspace_bytes,
                .determinism = kDeterministic,
                .math_type = kTensorCoresAllowed,
                .reserved = {}};
  }
  return kSuccess;
}

}  // namespace

extern "C" {

int cudnnCreateConvolutionDescriptor(void** descriptor) {
  HPO_LIBRARY_CALL(cudnnCreateConvolutionDescriptor);
  *descriptor = LiveObjects<ConvolutionDescriptor>().Create();
  return kSuccess;
}

int cudnnDestroyConvolutionDescriptor(void* descriptor) {
  HPO_LIBRARY_CALL(cudnnDestroyConvolutionDescriptor);
  LiveObjects<ConvolutionDescriptor>().Destroy("cudnnDestroyConvolutionDescriptor", descriptor);
  return kSuccess;
}

int cudnnGetConvolutionForwardAlgorithm_v7(void*, const void* x, const void* w, const void*,
                                           const void*, int room, int* count,
                                           SearchAnswer* answers) {
  HPO_LIBRARY_CALL(cudnnGetConvolutionForwardAlgorithm_v7);
  return AnswerSearch(WorkspaceBytes("cudnnGetConvolutionForwardAlgorithm_v7", x, nullptr, w), room,
                      count, answers);
}

int cudnnGetConvolutionBackwardDataAlgorithm_v7(void*, const void* w, const void* dy, const void*,
                                                const void*, int room, int* count,
                                                SearchAnswer* answers) {
  HPO_LIBRARY_CALL(cudnnGetConvolutionBackwardDataAlgorithm_v7);
  return AnswerSearch(WorkspaceBytes("cudnnGetConvolutionBackwardDataAlgorithm_v7", dy, nullptr, w),
                      room, count, answers);
}

int cudnnGetConvolutionBackwardFilterAlgorithm_v7(void*, const void* x, const void* dy, const void*,
                                                  const void* dw, int room, int* count,
                                                  SearchAnswer* answers) {
  HPO_LIBRARY_CALL(cudnnGetConvolutionBackwardFilterAlgorithm_v7);
  return AnswerSearch(WorkspaceBytes("cudnnGetConvolutionBackwardFilterAlgorithm_v7", x, dy, dw),
                      room, count, answers);
}

int cudnnFindConvolutionForwardAlgorithmEx(void*, const void* x, const void*, const void* w,
                                           const void*, const void*, const void*, void*, int room,
                                           int* count, SearchAnswer* answers, void*, size_t) {
  HPO_COMPUTE_CALL(cudnnFindConvolutionForwardAlgorithmEx);
  return AnswerSearch(WorkspaceBytes("cudnnFindConvolutionForwardAlgorithmEx", x, nullptr, w), room,
                      count, answers);
}

int cudnnFindConvolutionBackwardDataAlgorithmEx(void*, const void* w, const void*, const void* dy,
                                                const void*, const void*, const void*, void*,
                                                int room, int* count, SearchAnswer* answers, void*,
                                                size_t) {
  HPO_COMPUTE_CALL(cudnnFindConvolutionBackwardDataAlgorithmEx);
  return AnswerSearch(WorkspaceBytes("cudnnFindConvolutionBackwardDataAlgorithmEx", dy, nullptr, w),
                      room, count, answers);
}

int cudnnFindConvolutionBackwardFilterAlgorithmEx(void*, const void* x, const void*, const void* dy,
                                                  const void*, const void*, const void* dw, void*,
                                                  int room, int* count, SearchAnswer* answers,
                                                  void*, size_t) {
  HPO_COMPUTE_CALL(cudnnFindConvolutionBackwardFilterAlgorithmEx);
  return AnswerSearch(WorkspaceBytes("cudnnFindConvolutionBackwardFilterAlgorithmEx", x, dy, dw),
                      room, count, answers);
}

int cudnnGetConvolutionForwardWorkspaceSize(void*, const void* x, const void* w, const void*,
                                            const void*, int, size_t* bytes) {
  HPO_LIBRARY_CALL(cudnnGetConvolutionForwardWorkspaceSize);
  *bytes = WorkspaceBytes("cudnnGetConvolutionForwardWorkspaceSize", x, nullptr, w);
  return kSuccess;
}

int cudnnGetConvolutionBackwardDataWorkspaceSize(void*, const void* w, const void* dy, const void*,
                                                 const void*, int, size_t* bytes) {
  HPO_LIBRARY_CALL(cudnnGetConvolutionBackwardDataWorkspaceSize);
  *bytes = WorkspaceBytes("cudnnGetConvolutionBackwardDataWorkspaceSize", dy, nullptr, w);
  return kSuccess;
}

int cudnnGetConvolutionBackwardFilterWorkspaceSize(void*, const void* x, const void* dy,
                                                   const void*, const void* dw, int,
                                                   size_t* bytes) {
  HPO_LIBRARY_CALL(cudnnGetConvolutionBackwardFilterWorkspaceSize);
  *bytes = WorkspaceBytes("cudnnGetConvolutionBackwardFilterWorkspaceSize", x, dy, dw);
  return kSuccess;
}

}  // extern "C"

}  // namespace hpo::emulator::cudnn
