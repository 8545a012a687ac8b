#include "worker/trainer/base/autocast.h"

#include <ATen/autocast_mode.h>

namespace hpo::trainer {
namespace {

void Set(const AutocastState& state) {
  at::autocast::set_autocast_enabled(state.device_type, state.enabled);
  at::autocast::set_autocast_dtype(state.device_type, state.type);
}

}  // namespace

at::ScalarType ScalarTypeOf(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return torch::kFloat32;
    case Precision::kBfloat16:
      return torch::kBFloat16;
    case Precision::kFloat16:
      return torch::kFloat16;
  }
  return torch::kFloat32;
}

AutocastState::AutocastState(torch::Device device)
    : device_type(device.type()),
      enabled(at::autocast::is_autocast_enabled(device.type())),
      type(at::autocast::get_autocast_dtype(device.type())) {}

AutocastScope::AutocastScope(const AutocastState& state)
    : before_(torch::Device(state.device_type)),
      cached_before_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_cache_enabled(false);
  Set(state);
}

AutocastScope::~AutocastScope() {
  Set(before_);
  at::autocast::set_autocast_cache_enabled(cached_before_);
}

}  // namespace hpo::trainer
