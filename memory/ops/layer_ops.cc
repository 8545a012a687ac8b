// Tested by tests/memory/trace/step_tracer_test.cc.
#include "memory/ops/layer_ops.h"

#include <utility>

#include "memory/ops/embedding_scratch.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory::ops {
namespace {

TracedStorage EmbeddingGradient(TracedDevice& device, int64_t num_indices, int64_t width,
                                const TracedParameter& table) {
  if (SumsWithoutSorting(num_indices, device.traits())) {
    return device.Allocate(table.bytes(), MemoryClass::kGradients);
  }
  const EmbeddingScratch scratch =
      EmbeddingScratchOf(num_indices, table.elements / width, width, device.traits());
  const auto temporary = [&device](int64_t bytes) {
    return device.Allocate(bytes, MemoryClass::kTemporary);
  };
  const TracedStorage sorted = temporary(scratch.indices);
  const TracedStorage original = temporary(scratch.indices);
  {
    const TracedStorage range = temporary(scratch.indices);
    device.Touch(scratch.sort);
  }
  TracedStorage gradient = device.Allocate(table.bytes(), MemoryClass::kGradients);
  const TracedStorage segments = temporary(scratch.indices);
  const TracedStorage num_segments = temporary(kIndexBytes);
  {
    const TracedStorage unique = temporary(scratch.indices);
    device.Touch(scratch.unique);
  }
  const TracedStorage parts_of_segments = temporary(scratch.segments);
  const TracedStorage first_parts = temporary(scratch.segments);
  device.Touch(scratch.scan);
  const TracedStorage num_parts = temporary(kIndexBytes);
  const TracedStorage parts = temporary(scratch.parts);
  device.Touch(scratch.sums);
  return gradient;
}

// x times the square root of its mean square, times the weight.
TracedTensor CpuRmsNorm(TracedDevice& device, const TracedTensor& input, const TracedNorm& norm) {
  const int64_t rows = input.elements / norm.width;
  const int64_t row_bytes = kFloatBytes * rows;
  const int64_t bytes = input.bytes();
  TracedTensor deviation;
  {
    TracedTensor square = device.NewTensor(input.elements);
    square.edge =
        device.Record({input.edge}, {input.storage}, [&device, bytes](auto&, const auto&) {
          TracedStorage power = device.Allocate(bytes, MemoryClass::kTemporary);
          TracedStorage twice;
          {
            const Number two(device);
            twice = device.Allocate(bytes, MemoryClass::kTemporary);
          }
          return OneGradient(device.Allocate(bytes));
        });
    TracedTensor mean = device.NewTensor(rows);
    mean.edge = device.Record({square.edge}, {}, [&device, bytes](auto&, const auto&) {
      const Number count(device);
      return OneGradient(device.Allocate(bytes));
    });
    { const Number count(device); }
    { const Number eps(device); }
    deviation = device.NewTensor(rows);
    deviation.edge =
        device.Record({mean.edge}, {deviation.storage}, [&device, row_bytes](auto&, const auto&) {
          const TracedStorage cube = device.Allocate(row_bytes, MemoryClass::kTemporary);
          TracedStorage half;
          {
            const Number factor(device);
            half = device.Allocate(row_bytes, MemoryClass::kTemporary);
          }
          return OneGradient(device.Allocate(row_bytes));
        });
  }
  // Torch's sum of a gradient over what was repeated comes after both products.
  TracedTensor normed = device.NewTensor(input.elements);
  normed.edge = device.Record({deviation.edge, input.edge}, {deviation.storage, input.storage},
                              [&device, bytes, row_bytes](auto&, const auto&) {
                                TracedGradients gradients(2);
                                const TracedStorage product =
                                    device.Allocate(bytes, MemoryClass::kTemporary);
                                gradients[1] = device.Allocate(bytes);
                                gradients[0] = device.Allocate(row_bytes);
                                return gradients;
                              });
  TracedTensor output = device.NewTensor(input.elements);
  const bool trains = norm.weight.trainable;
  output.edge =
      device.Record({norm.weight.Edge(), normed.edge}, {trains ? normed.storage : TracedStorage()},
                    [&device, bytes, weight_bytes = trains ? norm.weight.bytes() : -1,
                     wanted = normed.edge.IsWanted()](auto&, const auto&) {
                      TracedGradients gradients(2);
                      TracedStorage product;
                      if (weight_bytes >= 0)
                        product = device.Allocate(bytes, MemoryClass::kTemporary);
                      if (wanted) gradients[1] = device.Allocate(bytes);
                      if (weight_bytes >= 0) {
                        gradients[0] = device.Allocate(weight_bytes, MemoryClass::kGradients);
                      }
                      return gradients;
                    });
  return output;
}

}  // namespace

TracedTensor Embedding(TracedDevice& device, const TracedStorage& indices, int64_t num_indices,
                       const TracedParameter& table, int64_t width) {
  TracedTensor output = device.NewTensor(num_indices * width, table.element_size);
  output.edge = device.Record(
      {table.Edge()}, {indices}, [&device, num_indices, width, table](auto&, const auto&) {
        return OneGradient(EmbeddingGradient(device, num_indices, width, table));
      });
  return output;
}

TracedTensor LayerNorm(TracedDevice& device, const TracedTensor& input, const TracedNorm& norm) {
  // Autocast of a CPU leaves it alone.
  const TracedTensor x = device.traits().cpu ? input : CastToFloat(device, input);
  const int64_t rows = x.elements / norm.width;
  TracedTensor output = device.NewTensor(x.elements, x.element_size);
  const bool has_bias = norm.bias.has_value();
  TracedStorage mean;
  if (has_bias) mean = device.Allocate(kFloatBytes * rows);
  TracedStorage deviation = device.Allocate(kFloatBytes * rows);
  const GradientEdge bias_edge = has_bias ? norm.bias->Edge() : GradientEdge{};
  output.edge =
      device.Record({x.edge, norm.weight.Edge(), bias_edge}, {x.storage, mean, deviation},
                    [&device, bytes = x.bytes(), wanted = x.edge.IsWanted(),
                     trains = norm.weight.trainable, weight_bytes = norm.weight.bytes(),
                     row_bytes = norm.width * x.element_size, has_bias](auto&, const auto&) {
                      TracedGradients gradients(3);
                      if (wanted) gradients[0] = device.Allocate(bytes);
                      if (trains)
                        gradients[1] = device.Allocate(weight_bytes, MemoryClass::kGradients);
                      if (trains && has_bias) {
                        gradients[2] = device.Allocate(weight_bytes, MemoryClass::kGradients);
                      }
                      // Partial sums of the two of a thread (CPU).
                      if (device.traits().cpu && trains)
                        device.Touch(2 * device.traits().threads_with_buffers * row_bytes);
                      return gradients;
                    });
  mean.Reset();
  return output;
}

TracedTensor RmsNorm(TracedDevice& device, const TracedTensor& input, const TracedNorm& norm) {
  return device.traits().cpu ? CpuRmsNorm(device, input, norm) : LayerNorm(device, input, norm);
}

}  // namespace hpo::memory::ops
