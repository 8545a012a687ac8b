// The scratch memory of the emulated cuDNN's convolutions.
#pragma once

#include <cstdint>
#include <vector>

namespace hpo::emulator::cudnn {

// A tensor of a convolution: [batch, channels, spatial...], or a filter's
// [output channels, input channels of a group, spatial...].
struct ConvolutionTensor {
  int data_type = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // elements
};

// Ends the program if the tensor has fewer than 3 dimensions, or not as many strides.
ConvolutionTensor MakeConvolutionTensor(int data_type, std::vector<int64_t> sizes,
                                        std::vector<int64_t> strides);

struct Convolution {
  std::vector<ConvolutionTensor> inputs;  // what its kernel reads; the filter may be one of them
  int64_t channels_per_group = 0;         // input channels; 1: depthwise
};

// Bytes of scratch memory that a convolution wants. `capability`: the GPU's, 10 x major + minor.
//
// The rule: an implicit matrix product needs no scratch memory. Tensor cores compute in 16 bits on
// channels-last tensors alone; inputs in another layout are first copied to it, with the channels
// padded to a multiple of 8. The output is written in the caller's layout. A depthwise convolution
// is no matrix product and uses no tensor cores.
// Sources: cuDNN's developer guide, "Tensor Transformations" (conversion between NCHW and NHWC,
// padding), and NVIDIA's "Convolutional Layers User's Guide", "Tensor Layouts". In 32 bits NCHW
// kernels are as good (tensorflow/tensorflow pull request 56744), so nothing is copied.
//
// What is not known, and taken as none: partial sums of backward-filter kernels; Winograd and FFT
// kernels, which cuDNN's heuristics may prefer where memory is free (pytorch/pytorch issue 49207),
// at 4 times the bytes of input and output and more. Torch takes the next engine where the memory
// of one cannot be had, so they raise the reserved peak and do not decide whether a program fits.
int64_t ConvolutionWorkspaceBytes(const Convolution& convolution, int capability);

}  // namespace hpo::emulator::cudnn
