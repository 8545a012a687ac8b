// The sizes that the emulated cuDNN computes, against published figures.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "emulator/cudnn/convolution_workspace.h"
#include "emulator/cudnn/dropout.h"
#include "emulator/cudnn/published_numbers.h"
#include "emulator/cudnn/rnn_layout.h"
#include "gtest/gtest.h"

namespace hpo::emulator::cudnn {
namespace {

constexpr int kPascal = 60;
constexpr int kTuring = 75;
constexpr int kAmpere = 80;
constexpr int64_t kFloatBytes = 4;

ConvolutionTensor Nchw(int data_type, int64_t channels) {
  return {
      .data_type = data_type, .sizes = {4, channels, 6, 5}, .strides = {channels * 30, 30, 5, 1}};
}

int64_t Workspace(const ConvolutionTensor& input, int capability) {
  return ConvolutionWorkspaceBytes({.inputs = {input}, .channels_per_group = 3}, capability);
}

TEST(ConvolutionWorkspace, CopiesInputsForTensorCoresAlone) {
  const int64_t copy = 2 * 4 * 8 * 6 * 5;  // 3 channels are padded to 8
  EXPECT_EQ(Workspace(Nchw(kDataHalf, 3), kAmpere), copy);
  EXPECT_EQ(Workspace(Nchw(kDataBfloat16, 3), kAmpere), copy);
  EXPECT_EQ(Workspace(Nchw(kDataHalf, 3), kTuring), copy);
  EXPECT_EQ(Workspace(Nchw(kDataBfloat16, 3), kTuring), 0);
  EXPECT_EQ(Workspace(Nchw(kDataHalf, 3), kPascal), 0);
  EXPECT_EQ(Workspace(Nchw(kDataFloat, 3), kAmpere), 0);
  EXPECT_EQ(Workspace(Nchw(kDataDouble, 3), kAmpere), 0);
}

TEST(ConvolutionWorkspace, ChannelsLastAndDepthwiseNeedNone) {
  ConvolutionTensor input = Nchw(kDataHalf, 8);
  EXPECT_EQ(ConvolutionWorkspaceBytes({.inputs = {input}, .channels_per_group = 1}, kAmpere), 0);
  input.strides = {240, 1, 40, 8};
  EXPECT_EQ(Workspace(input, kAmpere), 0);
  EXPECT_EQ(Workspace({kDataHalf, {4, 8, 1, 1}, {8, 1, 1, 1}}, kAmpere), 0);
}

// github.com/pytorch/pytorch/issues/2895: 4 layers of 320 with 123 inputs, 1,000 steps of 25.
TEST(Rnn, KeepsInMemoryWhatWasPublished) {
  RnnShape shape{.cell = RnnCell::kLstm,
                 .input_size = 123,
                 .hidden_size = 320,
                 .projection_size = 320,
                 .layers = 4};
  EXPECT_EQ(RnnWeightElements(shape) + 10 * 320 + 10, 3038090);  // with a linear layer of 10
  EXPECT_EQ(RnnReserveElements(shape, 1000, 25) * kFloatBytes, 736000000);
  EXPECT_EQ(RnnWorkspaceElements(shape, 25) * kFloatBytes, 17730560);
  shape.cell = RnnCell::kGru;
  EXPECT_EQ(RnnWeightElements(shape) + 10 * 320 + 10, 2279370);
  EXPECT_EQ(RnnReserveElements(shape, 1000, 25) * kFloatBytes, 864000000);
  EXPECT_EQ(RnnWorkspaceElements(shape, 25) * kFloatBytes, 13169920);
  shape.cell = RnnCell::kTanh;
  EXPECT_EQ(RnnWeightElements(shape) + 10 * 320 + 10, 761930);
}

// Every part begins where the one before it ends.
void ExpectPartsFillTheWeights(const RnnShape& shape) {
  const int64_t num_matrices = 2 * shape.gates() + (shape.has_projection() ? 1 : 0);
  int64_t end = 0;
  for (int64_t layer = 0; layer < shape.layers * shape.directions; ++layer) {
    for (int64_t i = 0; i < num_matrices; ++i) {
      const RnnPart part = RnnMatrix(shape, layer, i);
      EXPECT_EQ(part.offset, end);
      end += part.rows * part.columns;
    }
    EXPECT_EQ(RnnMatrix(shape, layer, num_matrices).rows, 0);
  }
  for (int64_t layer = 0; layer < shape.layers * shape.directions; ++layer) {
    for (int64_t i = 0; i < shape.bias_vectors * shape.gates(); ++i) {
      const RnnPart part = RnnBias(shape, layer, i);
      EXPECT_EQ(part.offset, end);
      end += part.rows * part.columns;
    }
    EXPECT_EQ(RnnBias(shape, layer, shape.bias_vectors * shape.gates()).rows, 0);
  }
  EXPECT_EQ(RnnWeightElements(shape), end);
}

TEST(Rnn, PartsFillTheWeights) {
  for (const RnnCell cell : {RnnCell::kRelu, RnnCell::kLstm, RnnCell::kGru}) {
    for (const int64_t projection : {7, 5}) {
      for (const int64_t biases : {0, 1, 2}) {
        ExpectPartsFillTheWeights({.cell = cell,
                                   .bias_vectors = biases,
                                   .directions = 2,
                                   .input_size = 3,
                                   .hidden_size = 7,
                                   .projection_size = projection,
                                   .layers = 3});
      }
    }
  }
}

TEST(Dropout, HasAStateForEachThread) {
  Card card{};
  card.num_multiprocessors = 108;
  card.threads_per_multiprocessor = 2048;
  EXPECT_EQ(DropoutStateBytes(card), size_t{108} * 2048 * 48);
}

}  // namespace
}  // namespace hpo::emulator::cudnn
