// Sizes of a recurrent network of cuDNN: its weights and what it keeps in memory while it runs.
#pragma once

#include <cstdint>

namespace hpo::emulator::cudnn {

// cudnnRNNMode_t.
enum class RnnCell { kRelu = 0, kTanh = 1, kLstm = 2, kGru = 3 };

struct RnnShape {
  RnnCell cell = RnnCell::kTanh;
  int64_t bias_vectors = 2;  // of each gate: 0, 1 or 2
  int64_t directions = 1;    // 1 or 2
  int64_t input_size = 0;
  int64_t hidden_size = 0;
  int64_t projection_size = 0;  // hidden_size where there is no projection
  int64_t layers = 0;

  int64_t gates() const;
  bool has_projection() const { return projection_size != hidden_size; }
};

// A part of the weights, in elements. No rows: there is no such part.
struct RnnPart {
  int64_t offset = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

// The parts are one after the other: all matrices of all layers, then all biases. A layer of a
// bidirectional network is two pseudo layers. In a pseudo layer matrix 0 to gates - 1 belongs to
// the input, gates to 2 * gates - 1 to the state, 2 * gates is the projection. The order is that
// which PyTorch relies on (ATen/native/cudnn/RNN.cpp, get_parameters).
RnnPart RnnMatrix(const RnnShape& shape, int64_t pseudo_layer, int64_t number);
RnnPart RnnBias(const RnnShape& shape, int64_t pseudo_layer, int64_t number);
// Of all parts.
int64_t RnnWeightElements(const RnnShape& shape);

// Elements that a network keeps in memory for `steps` steps of `batch` sequences.
//
// cuDNN publishes no formula. The two figures of pytorch/pytorch issue 2895 (an LSTM and a GRU with
// 4 layers of 320, 1,000 steps of 25 sequences, in 32 bits) give these to the byte:
//   reserve    for each step, sequence and unit, 5 elements in each layer of an LSTM and 6 in each
//              layer of a GRU, and one more between two layers
//   workspace  a copy of the matrices, and for each sequence, unit and layer 44 elements (LSTM) or
//              32 (GRU), whatever the number of steps
// Assumed: networks without gates keep 1 element in each layer and take 12; directions multiply;
// 16-bit networks keep as many elements; padded steps count.
int64_t RnnReserveElements(const RnnShape& shape, int64_t steps, int64_t batch);
int64_t RnnWorkspaceElements(const RnnShape& shape, int64_t batch);

}  // namespace hpo::emulator::cudnn
