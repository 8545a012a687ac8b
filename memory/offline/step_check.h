// Whether a described step can be traced.
#pragma once

#include "absl/status/status.h"
#include "memory/offline/step_description.h"

namespace hpo::memory {

// For a step that was not read by ParseStepDescription.
//   InvalidArgument  what ParseStepDescription says of layers, lengths and tensors
//   Unimplemented    a model whose family has no trace
absl::Status CheckStep(const StepDescription& step);

}  // namespace hpo::memory
