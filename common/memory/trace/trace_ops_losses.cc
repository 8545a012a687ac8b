// Losses.
#include "common/memory/trace/trace_ops.h"

namespace hpo {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kIndex = 8;

}  // namespace

TracedTensor TraceOps::CrossEntropy(const TracedTensor& logits, int64_t rows, int64_t classes,
                                    const TracedStorage& labels) {
  const int64_t elements = rows * classes;
  TracedTensor log_probabilities = tracer_.NewTensor(elements, logits.element_size);
  log_probabilities.edge =
      tracer_.Record({logits.edge}, {log_probabilities.storage},
                     [this, bytes = log_probabilities.bytes()](auto&, const auto&) {
                       return OneGradient(tracer_.Allocate(bytes));
                     });
  // The softmax keeps its input's type, under autocast too; the loss does not.
  const TracedTensor x = CastToFloat(log_probabilities);
  TracedTensor loss = tracer_.NewTensor(1, x.element_size);
  const TracedStorage total_weight = tracer_.Allocate(x.element_size);
  loss.edge = tracer_.RecordLike(x, {x.storage, labels, total_weight});
  return loss;
}

TracedTensor TraceOps::ClassLoss(const TracedTensor& logits, int64_t rows, int64_t classes,
                                 const LossOptions& options) {
  return options.smoothed ? SmoothedCrossEntropy(logits, rows, classes, options.weighted)
                          : CrossEntropy(logits, rows, classes);
}

// Torch's own composition: the loss of the labels, and that of all classes alike.
// Source: aten/src/ATen/native/LossNLL.cpp, cross_entropy_loss_label_smoothing.
TracedTensor TraceOps::SmoothedCrossEntropy(const TracedTensor& logits, int64_t rows,
                                            int64_t classes, bool weighted) {
  const int64_t bytes = kFloat * rows * classes;
  TracedTensor log_probabilities = tracer_.NewTensor(rows * classes);
  log_probabilities.edge = tracer_.Record(
      {logits.edge}, {log_probabilities.storage},
      [this, bytes](auto&, const auto&) { return OneGradient(tracer_.Allocate(bytes)); });
  TracedTensor of_labels = tracer_.NewTensor(1);
  {
    const TracedStorage total_weight = tracer_.Allocate(kFloat);
    of_labels.edge =
        tracer_.RecordLike(log_probabilities, {log_probabilities.storage, total_weight});
  }
  TracedTensor by_row = NegativeSumOfRows(log_probabilities, rows, weighted);
  const TracedStorage ignored = IsIgnored(rows);
  by_row.edge = tracer_.RecordLike(by_row, {ignored});
  TracedTensor of_all = tracer_.NewTensor(1);
  // An expanded view of the sum's gradient.
  of_all.edge = tracer_.Record({by_row.edge}, {}, [](auto& incoming, const auto&) {
    return OneGradient(incoming[0].AsView());
  });
  return Add(Scale(of_labels), Scale(of_all));
}

// Minus the sum over classes.
TracedTensor TraceOps::NegativeSumOfRows(const TracedTensor& input, int64_t rows, bool weighted) {
  TracedTensor product = input;
  if (weighted) {
    product = tracer_.NewTensor(input.elements);
    product.edge = tracer_.RecordLike(input);
  }
  TracedTensor sum = tracer_.NewTensor(rows);
  sum.edge = tracer_.Record({product.edge}, {}, [](auto& incoming, const auto&) {
    return OneGradient(incoming[0].AsView());
  });
  TracedTensor negative = tracer_.NewTensor(rows);
  negative.edge = tracer_.RecordLike(sum);
  sum.storage.Reset();
  return negative;
}

// Which labels no loss is taken of; on a CPU the number compared with is a tensor.
TracedStorage TraceOps::IsIgnored(int64_t rows) {
  TracedStorage number;
  if (traits_.cpu) number = tracer_.Allocate(kIndex, MemoryClass::kTemporary);
  return tracer_.Allocate(rows);
}

// Source: aten/src/ATen/native/Loss.cpp, its backward tools/autograd/derivatives.yaml.
TracedTensor TraceOps::BinaryCrossEntropy(const TracedTensor& logits,
                                          const std::optional<int64_t>& weights) {
  const TracedTensor x = CastToFloat(logits);
  TracedTensor loss;
  {
    const TracedStorage log_sigmoid = tracer_.Allocate(x.bytes(), MemoryClass::kTemporary);
    if (traits_.cpu) tracer_.Touch(x.bytes());
    if (weights.has_value()) WeighPositives(x.bytes(), *weights);
    const TracedStorage by_element = tracer_.Allocate(x.bytes(), MemoryClass::kTemporary);
    loss = tracer_.NewTensor(1, x.element_size);
    TouchReductionScratch({.rows = 1, .columns = x.elements, .over_rows = false});
  }
  if (!weights.has_value()) {
    loss.edge = tracer_.RecordLike(x, {x.storage});
    return loss;
  }
  loss.edge = tracer_.Record({x.edge}, {x.storage}, [this, bytes = x.bytes()](auto&, const auto&) {
    const TracedStorage weighted = tracer_.Allocate(bytes, MemoryClass::kTemporary);
    TracedStorage gradient;
    {
      const Number one(*this);
      gradient = tracer_.Allocate(bytes);
    }
    tracer_.Touch(bytes);  // the sigmoid
    return OneGradient(gradient);
  });
  return loss;
}

// What a label's log-sigmoid is multiplied by.
void TraceOps::WeighPositives(int64_t bytes, int64_t weights) {
  TracedStorage less_one;
  {
    const Number one(*this);
    less_one = tracer_.Allocate(kFloat * weights, MemoryClass::kTemporary);
  }
  const TracedStorage factors = tracer_.Allocate(bytes, MemoryClass::kTemporary);
  { const Number one(*this); }
  less_one.Reset();
}

TracedTensor TraceOps::SquaredError(const TracedTensor& predicted) {
  // Made as large as what it is a sum of, then made smaller.
  TracedTensor loss = tracer_.NewTensor(predicted.elements, predicted.element_size);
  loss.elements = 1;
  tracer_.Touch(predicted.bytes());
  loss.edge = tracer_.RecordLike(predicted, {predicted.storage});
  return loss;
}

}  // namespace hpo
