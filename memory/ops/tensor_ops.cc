// Tested by tests/memory/trace/step_tracer_test.cc.
#include "memory/ops/tensor_ops.h"

#include <algorithm>

#include "memory/trace/step_tracer.h"

namespace hpo::memory::ops {
namespace {

constexpr int64_t kNumber = 8;  // a double or an int64

TracedTensor Scaled(TracedDevice& device, TracedTensor x, bool in_place) {
  const Number number(device, x.element_size);
  if (!in_place) x.storage = device.Allocate(x.bytes());
  x.edge = device.Record(
      {x.edge}, {},
      [&device, bytes = x.bytes(), element_size = x.element_size](auto&, const auto&) {
        const Number factor(device, element_size);
        return OneGradient(device.Allocate(bytes));
      });
  return x;
}

}  // namespace

TracedTensor Cast(TracedDevice& device, const TracedTensor& input, int64_t element_size) {
  if (input.element_size == element_size) return input;
  TracedTensor output = device.NewTensor(input.elements, element_size);
  output.edge = device.RecordLike(input);
  return output;
}

TracedTensor CastForProduct(TracedDevice& device, const TracedTensor& input) {
  return device.in_autocast() ? Cast(device, input, kHalfBytes) : input;
}

TracedTensor CastToFloat(TracedDevice& device, const TracedTensor& input) {
  return device.in_autocast() ? Cast(device, input, kFloatBytes) : input;
}

Number::Number(TracedDevice& device, int64_t element_size) {
  if (!device.traits().cpu) return;
  as_given_ = device.Allocate(kNumber, MemoryClass::kTemporary);
  if (element_size > 0) converted_ = device.Allocate(element_size, MemoryClass::kTemporary);
}

TracedTensor Dropout(TracedDevice& device, const TracedTensor& input, double probability) {
  if (probability == 0.0) return input;
  const TracedStorage mask = device.Allocate(input.elements);
  TracedTensor output = device.NewTensor(input.elements, input.element_size);
  output.edge = device.RecordLike(input, {mask});
  return output;
}

TracedTensor Activate(TracedDevice& device, const TracedTensor& input, Activation activation) {
  TracedTensor output = device.NewTensor(input.elements, input.element_size);
  const bool keeps_output = activation == Activation::kRelu || activation == Activation::kTanh;
  output.edge = device.RecordLike(input, {keeps_output ? output.storage : input.storage});
  return output;
}

TracedTensor Add(TracedDevice& device, const TracedTensor& a, const TracedTensor& b) {
  TracedStorage widened;  // a CPU's kernel wants one type
  if (device.traits().cpu && a.element_size != b.element_size) {
    widened = device.Allocate(a.elements * std::max(a.element_size, b.element_size),
                              MemoryClass::kTemporary);
  }
  TracedTensor output = device.NewTensor(a.elements, std::max(a.element_size, b.element_size));
  // A gradient of another type is converted, where somebody wants it.
  const auto converts_to = [&output](const TracedTensor& input) {
    return input.edge.IsWanted() && input.element_size != output.element_size ? input.bytes() : 0;
  };
  output.edge = device.Record(
      {a.edge, b.edge}, {},
      [&device, a_bytes = converts_to(a), b_bytes = converts_to(b)](auto& incoming, const auto&) {
        TracedGradients gradients(2);
        gradients[0] = a_bytes > 0 ? device.Allocate(a_bytes) : incoming[0];
        gradients[1] = b_bytes > 0 ? device.Allocate(b_bytes) : incoming[0];
        return gradients;
      });
  return output;
}

TracedTensor Multiply(TracedDevice& device, const TracedTensor& a, const TracedTensor& b) {
  TracedTensor output = device.NewTensor(a.elements, std::max(a.element_size, b.element_size));
  const auto wanted = [](const TracedTensor& input) {
    return input.edge.IsWanted() ? input.bytes() : -1;
  };
  output.edge = device.Record({a.edge, b.edge}, {b.storage, a.storage},
                              [&device, bytes = output.bytes(), a_bytes = wanted(a),
                               b_bytes = wanted(b)](auto&, const auto&) {
                                TracedGradients gradients(2);
                                if (b_bytes >= 0) gradients[1] = device.Allocate(bytes);
                                if (a_bytes >= 0) gradients[0] = device.Allocate(bytes);
                                // Products have the wider type; each is converted to its
                                // input's.
                                if (a_bytes >= 0 && a_bytes < bytes)
                                  gradients[0] = device.Allocate(a_bytes);
                                if (b_bytes >= 0 && b_bytes < bytes)
                                  gradients[1] = device.Allocate(b_bytes);
                                return gradients;
                              });
  return output;
}

TracedTensor AddRepeated(TracedDevice& device, const TracedTensor& a, const TracedTensor& b) {
  TracedTensor output = device.NewTensor(a.elements, a.element_size);
  output.edge = device.Record(
      {a.edge, b.edge}, {},
      [&device, wanted = b.edge.IsWanted(),
       repetitions = Reduction{.rows = a.elements / b.elements,
                               .columns = b.elements,
                               .element_size = a.element_size}](auto& incoming, const auto&) {
        TracedGradients gradients(2);
        gradients[0] = incoming[0];
        if (wanted) gradients[1] = Sum(device, repetitions, MemoryClass::kActivations);
        return gradients;
      });
  return output;
}

TracedTensor Copy(TracedDevice& device, const TracedTensor& input, bool copies_back) {
  return Relayout(device, input, /*copies=*/true, copies_back);
}

TracedTensor Relayout(TracedDevice& device, const TracedTensor& input, bool copies,
                      bool copies_back) {
  TracedTensor output = copies ? device.NewTensor(input.elements, input.element_size) : input;
  output.edge = device.Record(
      {input.edge}, {}, [&device, copies_back, bytes = input.bytes()](auto& incoming, const auto&) {
        return OneGradient(copies_back ? device.Allocate(bytes) : incoming[0].AsView());
      });
  return output;
}

TracedTensor Scale(TracedDevice& device, const TracedTensor& input) {
  return Scaled(device, input, /*in_place=*/false);
}

TracedTensor ScaleInPlace(TracedDevice& device, TracedTensor input) {
  return Scaled(device, std::move(input), /*in_place=*/true);
}

TracedTensor Select(TracedDevice& device, const TracedTensor& input, int64_t parts) {
  TracedTensor view = input;
  view.elements = input.elements / parts;
  view.edge = device.RecordLike(input);
  return view;
}

// The gradient of the second factor is made first. Each is kept for the other's.
TracedTensor BatchedProduct(TracedDevice& device, const TracedTensor& a, const TracedTensor& b,
                            int64_t elements) {
  const bool a_wanted = a.edge.IsWanted();
  const bool b_wanted = b.edge.IsWanted();
  TracedTensor output = device.NewTensor(elements, a.element_size);
  output.edge = device.Record(
      {a.edge, b.edge},
      {a_wanted ? b.storage : TracedStorage(), b_wanted ? a.storage : TracedStorage()},
      [&device, a_bytes = a_wanted ? a.bytes() : -1, b_bytes = b_wanted ? b.bytes() : -1](
          auto&, const auto&) {
        TracedGradients gradients(2);
        if (b_bytes >= 0) gradients[1] = device.Allocate(b_bytes);
        if (a_bytes >= 0) gradients[0] = device.Allocate(a_bytes);
        return gradients;
      });
  return output;
}

TracedStorage Sum(TracedDevice& device, const Reduction& reduction, MemoryClass result) {
  const int64_t results = reduction.over_rows ? reduction.columns : reduction.rows;
  TracedStorage sum = device.Allocate(reduction.element_size * results, result);
  TouchReductionScratch(device, reduction);
  return sum;
}

void TouchReductionScratch(TracedDevice& device, const Reduction& reduction) {
  const ReductionScratch scratch = ReductionScratchOf(reduction, device.traits());
  TracedStorage sums;
  if (scratch.output_sums > 0) {
    sums = device.Allocate(scratch.output_sums, MemoryClass::kTemporary);
  }
  if (scratch.partial_sums == 0) return;
  for (int64_t piece = 0; piece < scratch.pieces; ++piece) {
    const TracedStorage partial = device.Allocate(scratch.partial_sums, MemoryClass::kTemporary);
    device.Touch(scratch.semaphores);
  }
}

}  // namespace hpo::memory::ops
