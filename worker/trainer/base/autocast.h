// Lower precision by autocast: inside a scope, matrix products and attention run in 16 bits, while
// parameters, norms and losses stay in float32.
#pragma once

#include "common/study/trial.h"
#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

at::ScalarType ScalarTypeOf(Precision precision);

// Whether autocast acts on a device, and with which type.
struct AutocastState {
  // The calling thread's now.
  explicit AutocastState(torch::Device device);
  AutocastState(torch::Device device, at::ScalarType lower)
      : device_type(device.type()), enabled(lower != torch::kFloat32), type(lower) {}

  at::DeviceType device_type;
  bool enabled;
  at::ScalarType type;
};

// Sets the calling thread's autocast to `state` for the life of this. Casts of weights are not
// cached: a pass uses each weight once, and a copy that was made without recording gradients would
// be taken where they are recorded.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastState& state);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  AutocastState before_;
  bool cached_before_;
};

}  // namespace hpo::trainer
