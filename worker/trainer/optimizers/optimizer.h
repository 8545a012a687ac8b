// What turns gradients into a step of the parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "memory/trace/optimizer_states.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/optimizers/parameter_groups.h"

namespace hpo::trainer {

using NamedTensor = std::pair<std::string, torch::Tensor>;

// Not thread-safe. All parameters are on one device. Everything that a step needs is allocated by
// the constructor: a step allocates no tensor, so that no out-of-memory error can leave parameters
// half updated.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // The parameters that it updates.
  virtual const std::vector<ParameterGroup>& groups() const = 0;

  // One update of every parameter from its gradient, which must be defined and stays so; its values
  // may be overwritten.
  virtual void Step(double learning_rate) = 0;

  // Steps done so far.
  virtual int64_t num_steps() const = 0;

  // All that the next step depends on besides parameters, gradients and num_steps(): the
  // optimizer's own tensors, not copies, in a fixed order, each named "<parameter>.<state>". To
  // continue a training: copy into them what another run of the same trial had, then SetNumSteps.
  virtual std::vector<NamedTensor> State() const = 0;
  virtual void SetNumSteps(int64_t num_steps) = 0;
};

struct OptimizerOptions {
  memory::OptimizerKind kind = memory::OptimizerKind::kAdamW;
  double beta1 = 0.9;  // AdamW's, with states of 8 bits too
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.9;  // SGD's
};

// Allocates the optimizer's states. At least one parameter. Throws c10::OutOfMemoryError when they
// do not fit.
std::unique_ptr<Optimizer> MakeOptimizer(std::vector<ParameterGroup> groups,
                                         const OptimizerOptions& options);

}  // namespace hpo::trainer
