#include "emulator/cudnn/rnn_layout.h"

namespace hpo::emulator::cudnn {
namespace {

// What each cell keeps and takes, in elements (the header has the source).
struct CellMemory {
  int64_t gates;
  int64_t reserved;  // for each unit, step and sequence
  int64_t scratch;   // for each unit and sequence
};

CellMemory MemoryOf(RnnCell cell) {
  switch (cell) {
    case RnnCell::kLstm:
      return {.gates = 4, .reserved = 5, .scratch = 44};
    case RnnCell::kGru:
      return {.gates = 3, .reserved = 6, .scratch = 32};
    case RnnCell::kRelu:
    case RnnCell::kTanh:
      break;
  }
  return {.gates = 1, .reserved = 1, .scratch = 12};
}

int64_t InputColumns(const RnnShape& shape, int64_t pseudo_layer) {
  const bool is_first = pseudo_layer < shape.directions;
  return is_first ? shape.input_size : shape.projection_size * shape.directions;
}

int64_t ProjectionElements(const RnnShape& shape) {
  return shape.has_projection() ? shape.projection_size * shape.hidden_size : 0;
}

int64_t MatrixElements(const RnnShape& shape, int64_t pseudo_layer) {
  const int64_t columns = InputColumns(shape, pseudo_layer) + shape.projection_size;
  return shape.gates() * shape.hidden_size * columns + ProjectionElements(shape);
}

int64_t AllMatrixElements(const RnnShape& shape, int64_t num_pseudo_layers) {
  int64_t elements = 0;
  for (int64_t i = 0; i < num_pseudo_layers; ++i) elements += MatrixElements(shape, i);
  return elements;
}

}  // namespace

int64_t RnnShape::gates() const { return MemoryOf(cell).gates; }

RnnPart RnnMatrix(const RnnShape& shape, int64_t pseudo_layer, int64_t number) {
  const int64_t gates = shape.gates();
  const int64_t input_columns = InputColumns(shape, pseudo_layer);
  RnnPart part{.offset = AllMatrixElements(shape, pseudo_layer),
               .rows = shape.hidden_size,
               .columns = input_columns};
  if (number < gates) {
    part.offset += number * shape.hidden_size * input_columns;
    return part;
  }
  part.offset += gates * shape.hidden_size * input_columns;
  part.columns = shape.projection_size;
  if (number < 2 * gates) {
    part.offset += (number - gates) * shape.hidden_size * shape.projection_size;
    return part;
  }
  if (number > 2 * gates || !shape.has_projection()) return {};
  part.offset += gates * shape.hidden_size * shape.projection_size;
  part.rows = shape.projection_size;
  part.columns = shape.hidden_size;
  return part;
}

RnnPart RnnBias(const RnnShape& shape, int64_t pseudo_layer, int64_t number) {
  const int64_t num_biases = shape.gates() * shape.bias_vectors;
  if (number >= num_biases) return {};
  const int64_t index = pseudo_layer * num_biases + number;
  return {.offset =
              AllMatrixElements(shape, shape.layers * shape.directions) + index * shape.hidden_size,
          .rows = shape.hidden_size,
          .columns = 1};
}

int64_t RnnWeightElements(const RnnShape& shape) {
  const int64_t num_pseudo_layers = shape.layers * shape.directions;
  return AllMatrixElements(shape, num_pseudo_layers) +
         num_pseudo_layers * shape.gates() * shape.bias_vectors * shape.hidden_size;
}

int64_t RnnReserveElements(const RnnShape& shape, int64_t steps, int64_t batch) {
  const int64_t per_unit = MemoryOf(shape.cell).reserved * shape.layers + shape.layers - 1;
  return steps * batch * shape.directions * shape.hidden_size * per_unit;
}

int64_t RnnWorkspaceElements(const RnnShape& shape, int64_t batch) {
  const int64_t num_pseudo_layers = shape.layers * shape.directions;
  return AllMatrixElements(shape, num_pseudo_layers) +
         batch * shape.hidden_size * num_pseudo_layers * MemoryOf(shape.cell).scratch;
}

}  // namespace hpo::emulator::cudnn
