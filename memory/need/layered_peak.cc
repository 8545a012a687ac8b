#include "memory/need/layered_peak.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "memory/families/classifier_shape.h"
#include "memory/need/trial_trace.h"
#include "memory/ops/reduction_scratch.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory {
namespace {

constexpr int64_t kFewestLayers = 3;

struct TensorCount {
  int64_t tensors = 0;
  int64_t bytes = 0;  // each tensor rounded up on its own
  int64_t largest = 0;
};

class LayeredTrial {
 public:
  LayeredTrial(const MarkedTrial& trial, int64_t granularity, int64_t num_layers)
      : trial_(trial), granularity_(granularity), repetitions_(num_layers - 2) {}

  // Of the phases from the first called `first` to the one before the first called `end`.
  AllocationTimeline::Level PeakOf(absl::string_view first, absl::string_view end) const {
    const EventRange range = {.begin = StartOf(first), .end = StartOf(end)};
    AllocationTimeline time;
    size_t at = range.begin;
    for (const EventRange& layer : trial_.second_layer) {
      if (layer.begin < range.begin || layer.end > range.end) continue;
      time.Append(TimelineOf({.begin = at, .end = layer.begin}));
      time.Append(TimelineOf(layer), repetitions_);
      at = layer.end;
    }
    time.Append(TimelineOf({.begin = at, .end = range.end}));
    return time.peak();
  }

  // What making the model leaves: parameters, or what it keeps in addition.
  TensorCount CountOfModel(bool parameters) const {
    TensorCount count;
    for (size_t i = StartOf("model"); i < StartOf("optimizer states"); ++i) {
      const TraceEvent& event = trial_.trace.events[i];
      if ((event.memory_class == MemoryClass::kWeights) != parameters) continue;
      count.bytes += Counted(event);
      count.largest = std::max(count.largest, event.bytes);
      ++count.tensors;
    }
    return count;
  }

 private:
  // Where the first phase of that name begins; the end where there is none.
  size_t StartOf(absl::string_view name) const {
    for (const AllocationTrace::Phase& phase : trial_.trace.phases) {
      if (phase.name == name) return phase.first_event;
    }
    return trial_.trace.events.size();
  }

  int64_t Counted(const TraceEvent& event) const {
    return RoundUp(Bytes{event.bytes}, Bytes{granularity_}).count * (event.allocates ? 1 : -1);
  }

  AllocationTimeline TimelineOf(const EventRange& range) const {
    AllocationTimeline time;
    for (size_t i = range.begin; i < range.end; ++i) {
      const TraceEvent& event = trial_.trace.events[i];
      if (event.memory_class == MemoryClass::kWorkspaces) continue;
      const int64_t bytes = Counted(event);
      time.Change(event.memory_class == MemoryClass::kGradients
                      ? AllocationTimeline::Level{.gradients = bytes}
                      : AllocationTimeline::Level{.other = bytes});
    }
    return time;
  }

  const MarkedTrial& trial_;
  int64_t granularity_;
  int64_t repetitions_;
};

// The second layer's parameters.
TensorCount CountOfLayer(const ModelShape& shape, int64_t granularity) {
  const auto tensors = ParameterTensors(shape);
  HPO_CHECK(tensors.ok());
  TensorCount count;
  for (const ParameterTensor& tensor : *tensors) {
    if (tensor.layer != 1) continue;
    count.bytes += RoundUp(Bytes{kFloatBytes * tensor.NumElements()}, Bytes{granularity}).count;
    ++count.tensors;
  }
  return count;
}

// All gradients, and their norms one by one, then side by side; on a card first those of chunks.
AllocationTimeline::Level Clipping(const TensorCount& parameters, const KernelTraits& traits) {
  const Bytes granularity{traits.granularity};
  const Bytes norms{traits.granularity * parameters.tensors};
  const Bytes stacked = RoundUp(Bytes{kFloatBytes * parameters.tensors}, granularity) + granularity;
  const Bytes of_chunks =
      traits.cpu ? Bytes{}
                 : RoundUp(NormsOfChunks(parameters.tensors, parameters.largest / kFloatBytes),
                           granularity);
  return {.other = (norms + std::max(stacked, of_chunks)).count, .gradients = parameters.bytes};
}

}  // namespace

LayeredPeak FindLayeredPeak(const ClassifierShape& shape, const TrialPasses& passes,
                            const KernelTraits& traits) {
  HPO_CHECK(passes.stretches.size() == 1 && passes.stretches.front().steps.size() == 1);
  ClassifierShape shallow = shape;
  shallow.model.num_layers = std::min(shape.model.num_layers, kFewestLayers);
  const MarkedTrial marked = TraceMarkedTrial(shallow, passes, traits);
  const LayeredTrial trial(marked, traits.granularity, shape.model.num_layers);
  LayeredPeak peak;
  TensorCount parameters = trial.CountOfModel(/*parameters=*/true);
  if (shape.model.num_layers > kFewestLayers) {
    const TensorCount layer = CountOfLayer(shallow.model, traits.granularity);
    parameters.bytes += (shape.model.num_layers - kFewestLayers) * layer.bytes;
    parameters.tensors += (shape.model.num_layers - kFewestLayers) * layer.tensors;
  }
  peak.parameters = parameters.bytes;
  peak.training = trial.PeakOf("forward", "gradient clipping");
  const AllocationTimeline::Level clipping = Clipping(parameters, traits);
  if (clipping.Total() > peak.training.Total()) peak.training = clipping;
  peak.evaluation = trial.PeakOf("evaluation", "");
  for (AllocationTimeline::Level* level : {&peak.training, &peak.evaluation}) {
    level->other += trial.CountOfModel(/*parameters=*/false).bytes;
  }
  return peak;
}

}  // namespace hpo::memory
