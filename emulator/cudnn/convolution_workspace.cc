#include "emulator/cudnn/convolution_workspace.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "emulator/cudnn/published_numbers.h"
#include "emulator/machine.h"

namespace hpo::emulator::cudnn {
namespace {

constexpr int64_t kChannelMultiple = 8;
constexpr int64_t kBytesOf16Bits = 2;
constexpr int kFirstWithHalf = 70;      // Volta
constexpr int kFirstWithBfloat16 = 80;  // Ampere

bool UsesTensorCores(int data_type, int capability) {
  if (data_type == kDataHalf) return capability >= kFirstWithHalf;
  return data_type == kDataBfloat16 && capability >= kFirstWithBfloat16;
}

bool IsChannelsLast(const ConvolutionTensor& tensor) {
  const bool is_a_row = std::all_of(tensor.sizes.begin() + 2, tensor.sizes.end(),
                                    [](int64_t size) { return size == 1; });
  return is_a_row || tensor.strides[1] == 1;
}

int64_t BytesOfChannelsLastCopy(const ConvolutionTensor& tensor) {
  const int64_t channels = (tensor.sizes[1] + kChannelMultiple - 1) / kChannelMultiple;
  int64_t bytes = kBytesOf16Bits * channels * kChannelMultiple;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (i != 1) bytes *= tensor.sizes[i];
  }
  return bytes;
}

}  // namespace

ConvolutionTensor MakeConvolutionTensor(int data_type, std::vector<int64_t> sizes,
                                        std::vector<int64_t> strides) {
  if (sizes.size() < 3 || strides.size() != sizes.size()) {
    hpoEmulatedMissing("a convolution of cuDNN with fewer than 3 dimensions");
  }
  return {data_type, std::move(sizes), std::move(strides)};
}

int64_t ConvolutionWorkspaceBytes(const Convolution& convolution, int capability) {
  if (convolution.channels_per_group == 1) return 0;
  int64_t bytes = 0;
  for (const ConvolutionTensor& input : convolution.inputs) {
    if (!UsesTensorCores(input.data_type, capability)) return 0;
    if (!IsChannelsLast(input)) bytes += BytesOfChannelsLastCopy(input);
  }
  return bytes;
}

}  // namespace hpo::emulator::cudnn
