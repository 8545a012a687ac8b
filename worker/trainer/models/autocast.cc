#include "worker/trainer/models/autocast.h"

#include <ATen/autocast_mode.h>

namespace hpo {
namespace {

void Set(const AutocastState& state) {
  at::autocast::set_autocast_enabled(state.device_type, state.enabled);
  at::autocast::set_autocast_dtype(state.device_type, state.type);
}

}  // namespace

AutocastState::AutocastState(torch::Device device)
    : device_type(device.type()),
      enabled(at::autocast::is_autocast_enabled(device.type())),
      type(at::autocast::get_autocast_dtype(device.type())) {}

AutocastScope::AutocastScope(const AutocastState& state)
    : before_(torch::Device(state.device_type)) {
  at::autocast::increment_nesting();
  Set(state);
}

AutocastScope::~AutocastScope() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  Set(before_);
}

}  // namespace hpo
