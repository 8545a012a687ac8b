// Convolutions by cuDNN's calls before the graph API.
#include <cstddef>
#include <utility>
#include <vector>

#include "emulator/cudnn/descriptors.h"
#include "emulator/cudnn/published_numbers.h"
#include "gtest/gtest.h"
#include "tests/emulator/cudnn/emulated_gpu.h"

extern "C" {
int cudnnCreateTensorDescriptor(void** descriptor);
int cudnnDestroyTensorDescriptor(void* descriptor);
int cudnnSetTensorNdDescriptor(void* descriptor, int data_type, int num_dimensions,
                               const int* sizes, const int* strides);
int cudnnGetTensorNdDescriptor(const void* descriptor, int room, int* data_type,
                               int* num_dimensions, int* sizes, int* strides);
int cudnnCreateFilterDescriptor(void** descriptor);
int cudnnDestroyFilterDescriptor(void* descriptor);
int cudnnSetFilterNdDescriptor(void* descriptor, int data_type, int format, int num_dimensions,
                               const int* sizes);
int cudnnGetConvolutionForwardWorkspaceSize(void* handle, const void* x, const void* w,
                                            const void* convolution, const void* y, int algorithm,
                                            size_t* bytes);
int cudnnGetConvolutionBackwardDataWorkspaceSize(void* handle, const void* w, const void* dy,
                                                 const void* convolution, const void* dx,
                                                 int algorithm, size_t* bytes);
int cudnnGetConvolutionBackwardFilterWorkspaceSize(void* handle, const void* x, const void* dy,
                                                   const void* convolution, const void* dw,
                                                   int algorithm, size_t* bytes);
}

namespace hpo::emulator::cudnn {
namespace {

void* Tensor(const std::vector<int>& sizes) {
  void* tensor = nullptr;
  cudnnCreateTensorDescriptor(&tensor);
  cudnnSetTensorNdDescriptor(tensor, kDataHalf, 4, sizes.data(), PackedStrides(sizes).data());
  return tensor;
}

TEST(LegacyConvolution, WantsAsMuchAsByTheGraphApi) {
  void* const x = Tensor({2, 16, 8, 8});
  void* const y = Tensor({2, 32, 6, 6});
  void* filter = nullptr;
  cudnnCreateFilterDescriptor(&filter);
  const int sizes[] = {32, 16, 3, 3};
  const size_t x_bytes = 2 * 2 * 16 * 8 * 8;
  const size_t y_bytes = 2 * 2 * 32 * 6 * 6;
  for (const auto& [format, filter_bytes] :
       {std::pair<int, size_t>{0, 2 * 32 * 16 * 3 * 3}, std::pair<int, size_t>{kChannelsLast, 0}}) {
    cudnnSetFilterNdDescriptor(filter, kDataHalf, format, 4, sizes);
    size_t bytes = 0;
    cudnnGetConvolutionForwardWorkspaceSize(nullptr, x, filter, nullptr, y, 0, &bytes);
    EXPECT_EQ(bytes, x_bytes + filter_bytes);
    cudnnGetConvolutionBackwardDataWorkspaceSize(nullptr, filter, y, nullptr, x, 0, &bytes);
    EXPECT_EQ(bytes, y_bytes + filter_bytes);
    cudnnGetConvolutionBackwardFilterWorkspaceSize(nullptr, x, y, nullptr, filter, 0, &bytes);
    EXPECT_EQ(bytes, x_bytes + y_bytes);
  }
  cudnnDestroyTensorDescriptor(x);
  cudnnDestroyTensorDescriptor(y);
  cudnnDestroyFilterDescriptor(filter);
}

TEST(TensorDescriptor, AnswersAsManyDimensionsAsThereIsRoomFor) {
  void* const tensor = Tensor({2, 3, 4, 5});
  int data_type = -1;
  int num_dimensions = 0;
  int sizes[2] = {};
  int strides[2] = {};
  cudnnGetTensorNdDescriptor(tensor, 2, &data_type, &num_dimensions, sizes, strides);
  EXPECT_EQ(data_type, kDataHalf);
  EXPECT_EQ(num_dimensions, 4);
  EXPECT_EQ(sizes[1], 3);
  EXPECT_EQ(strides[0], 60);
  cudnnDestroyTensorDescriptor(tensor);
}

}  // namespace
}  // namespace hpo::emulator::cudnn
