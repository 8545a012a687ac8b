// Tested by tests/worker/trainer/memory_trace_tasks_test.cc.
#include "memory/ops/loss_ops.h"

#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory::ops {
namespace {

// Minus the sum over classes.
TracedTensor NegativeSumOfRows(TracedDevice& device, const TracedTensor& input, int64_t rows,
                               bool weighted) {
  TracedTensor product = input;
  if (weighted) {
    product = device.NewTensor(input.elements);
    product.edge = device.RecordLike(input);
  }
  TracedTensor sum = device.NewTensor(rows);
  sum.edge = device.Record({product.edge}, {}, [](auto& incoming, const auto&) {
    return OneGradient(incoming[0].AsView());
  });
  TracedTensor negative = device.NewTensor(rows);
  negative.edge = device.RecordLike(sum);
  sum.storage.Reset();
  return negative;
}

// Which labels no loss is taken of; on a CPU the number compared with is a tensor.
TracedStorage IsIgnored(TracedDevice& device, int64_t rows) {
  TracedStorage number;
  if (device.traits().cpu) number = device.Allocate(kIndexBytes, MemoryClass::kTemporary);
  return device.Allocate(rows);
}

// Torch's own composition: the loss of the labels, and that of all classes alike.
// Source: aten/src/ATen/native/LossNLL.cpp, cross_entropy_loss_label_smoothing.
TracedTensor SmoothedCrossEntropy(TracedDevice& device, const TracedTensor& logits, int64_t rows,
                                  int64_t classes, bool weighted) {
  const int64_t bytes = kFloatBytes * rows * classes;
  TracedTensor log_probabilities = device.NewTensor(rows * classes);
  log_probabilities.edge = device.Record(
      {logits.edge}, {log_probabilities.storage},
      [&device, bytes](auto&, const auto&) { return OneGradient(device.Allocate(bytes)); });
  TracedTensor of_labels = device.NewTensor(1);
  {
    const TracedStorage total_weight = device.Allocate(kFloatBytes);
    of_labels.edge =
        device.RecordLike(log_probabilities, {log_probabilities.storage, total_weight});
  }
  TracedTensor by_row = NegativeSumOfRows(device, log_probabilities, rows, weighted);
  const TracedStorage ignored = IsIgnored(device, rows);
  by_row.edge = device.RecordLike(by_row, {ignored});
  TracedTensor of_all = device.NewTensor(1);
  // An expanded view of the sum's gradient.
  of_all.edge = device.Record({by_row.edge}, {}, [](auto& incoming, const auto&) {
    return OneGradient(incoming[0].AsView());
  });
  return Add(device, Scale(device, of_labels), Scale(device, of_all));
}

// What a label's log-sigmoid is multiplied by.
void WeighPositives(TracedDevice& device, int64_t bytes, int64_t weights) {
  TracedStorage less_one;
  {
    const Number one(device);
    less_one = device.Allocate(kFloatBytes * weights, MemoryClass::kTemporary);
  }
  const TracedStorage factors = device.Allocate(bytes, MemoryClass::kTemporary);
  { const Number one(device); }
  less_one.Reset();
}

}  // namespace

TracedTensor CrossEntropy(TracedDevice& device, const TracedTensor& logits, int64_t rows,
                          int64_t classes) {
  const int64_t elements = rows * classes;
  TracedTensor log_probabilities = device.NewTensor(elements, logits.element_size);
  log_probabilities.edge =
      device.Record({logits.edge}, {log_probabilities.storage},
                    [&device, bytes = log_probabilities.bytes()](auto&, const auto&) {
                      return OneGradient(device.Allocate(bytes));
                    });
  // The softmax keeps its input's type, under autocast too; the loss does not.
  const TracedTensor x = CastToFloat(device, log_probabilities);
  TracedTensor loss = device.NewTensor(1, x.element_size);
  const TracedStorage total_weight = device.Allocate(x.element_size);
  loss.edge = device.RecordLike(x, {x.storage, total_weight});
  return loss;
}

TracedTensor ClassLoss(TracedDevice& device, const TracedTensor& logits, int64_t rows,
                       int64_t classes, const LossOptions& options) {
  return options.smoothed ? SmoothedCrossEntropy(device, logits, rows, classes, options.weighted)
                          : CrossEntropy(device, logits, rows, classes);
}

// Source: aten/src/ATen/native/Loss.cpp, its backward tools/autograd/derivatives.yaml.
TracedTensor BinaryCrossEntropy(TracedDevice& device, const TracedTensor& logits,
                                const std::optional<int64_t>& weights) {
  const TracedTensor x = CastToFloat(device, logits);
  TracedTensor loss;
  {
    const TracedStorage log_sigmoid = device.Allocate(x.bytes(), MemoryClass::kTemporary);
    if (device.traits().cpu) device.Touch(x.bytes());
    if (weights.has_value()) WeighPositives(device, x.bytes(), *weights);
    const TracedStorage by_element = device.Allocate(x.bytes(), MemoryClass::kTemporary);
    loss = device.NewTensor(1, x.element_size);
    TouchReductionScratch(device, {.rows = 1, .columns = x.elements, .over_rows = false});
  }
  if (!weights.has_value()) {
    loss.edge = device.RecordLike(x, {x.storage});
    return loss;
  }
  loss.edge =
      device.Record({x.edge}, {x.storage}, [&device, bytes = x.bytes()](auto&, const auto&) {
        const TracedStorage weighted = device.Allocate(bytes, MemoryClass::kTemporary);
        TracedStorage gradient;
        {
          const Number one(device);
          gradient = device.Allocate(bytes);
        }
        device.Touch(bytes);  // the sigmoid
        return OneGradient(gradient);
      });
  return loss;
}

TracedTensor SquaredError(TracedDevice& device, const TracedTensor& predicted) {
  // Made as large as what it is a sum of, then made smaller.
  TracedTensor loss = device.NewTensor(predicted.elements, predicted.element_size);
  loss.elements = 1;
  device.Touch(predicted.bytes());
  loss.edge = device.RecordLike(predicted, {predicted.storage});
  return loss;
}

}  // namespace hpo::memory::ops
