// Operations on tensors, element by element and in sums: see traced_device.h.
#pragma once

#include <cstdint>

#include "common/models/activation.h"
#include "memory/ops/reduction_scratch.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory::ops {

// ---- Types ----

// To another element type; the same tensor where it has it already.
TracedTensor Cast(TracedDevice& device, const TracedTensor& input, int64_t element_size);
// What, under autocast, a matrix product, and what a norm or softmax takes in place of `input`.
TracedTensor CastForProduct(TracedDevice& device, const TracedTensor& input);
TracedTensor CastToFloat(TracedDevice& device, const TracedTensor& input);

// A number on its way into an operation with a tensor of `element_size`; 0: no conversion. Events
// on a CPU alone.
class Number {
 public:
  explicit Number(TracedDevice& device, int64_t element_size = 4);

 private:
  TracedStorage as_given_;
  TracedStorage converted_;  // freed first
};

// ---- Element by element ----

TracedTensor Dropout(TracedDevice& device, const TracedTensor& input, double probability);
TracedTensor Activate(TracedDevice& device, const TracedTensor& input, Activation activation);
// Sum of two tensors of one shape; the result has the wider type.
TracedTensor Add(TracedDevice& device, const TracedTensor& a, const TracedTensor& b);
// Product of two tensors of one shape: keeps both.
TracedTensor Multiply(TracedDevice& device, const TracedTensor& a, const TracedTensor& b);
// `a` and, repeated over it, the smaller `b`.
TracedTensor AddRepeated(TracedDevice& device, const TracedTensor& a, const TracedTensor& b);
// Times or divided by a number.
TracedTensor Scale(TracedDevice& device, const TracedTensor& input);
// As Scale, in place: nobody else looks at the input's values.
TracedTensor ScaleInPlace(TracedDevice& device, TracedTensor input);

// ---- Layout ----

// A copy in another layout (contiguous, reshape); backward passes the gradient on as it is, or,
// with `copies_back`, copies it too.
TracedTensor Copy(TracedDevice& device, const TracedTensor& input, bool copies_back = false);
// As Copy, but where `copies` is false the result is a view of the input.
TracedTensor Relayout(TracedDevice& device, const TracedTensor& input, bool copies,
                      bool copies_back);
// One of `parts` equal parts along a dimension, as a view; backward makes the whole gradient.
TracedTensor Select(TracedDevice& device, const TracedTensor& input, int64_t parts);

// ---- Sums and products ----

// Product of every query with every key, and the like: keeps both; the second's gradient is made
// first.
TracedTensor BatchedProduct(TracedDevice& device, const TracedTensor& a, const TracedTensor& b,
                            int64_t elements);
// The sum of a matrix over its rows (or columns): `result`, allocated with what torch takes for it.
TracedStorage Sum(TracedDevice& device, const Reduction& reduction, MemoryClass result);
// What a sum takes in addition to its result.
void TouchReductionScratch(TracedDevice& device, const Reduction& reduction);

}  // namespace hpo::memory::ops
