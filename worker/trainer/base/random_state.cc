#include "worker/trainer/base/random_state.h"

namespace hpo::trainer {

RandomState::RandomState(torch::Device device)
    : generator_(at::globalContext().defaultGenerator(device)), state_(generator_.clone()) {}

void RandomState::Restore() const {
  if (!generator_.device().is_cpu()) {
    generator_.set_current_seed(state_.current_seed());
    generator_.set_offset(state_.get_offset());
    return;
  }
  auto* const now = generator_.get<at::CPUGeneratorImpl>();
  auto* const before = state_.get<at::CPUGeneratorImpl>();
  now->set_engine(before->engine());
  now->set_next_float_normal_sample(before->next_float_normal_sample());
  now->set_next_double_normal_sample(before->next_double_normal_sample());
}

RandomStateKeeper::~RandomStateKeeper() {
  try {
    before_.Restore();
  } catch (const c10::Error&) {
    // The device is lost, as the exception that brings us here says, or its next use will say.
  }
}

}  // namespace hpo::trainer
