#include "worker/trainer/models/adapters/frozen_parameters.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/models/model_parameters.h"
#include "common/study/unread_parameters.h"

namespace hpo::trainer {

void FreezeParameters(torch::nn::Module& model, const ModelShape& shape, const Freezing& freezing) {
  const auto tensors = ParameterTensors(shape, {.kind = TaskHead::Kind::kSequenceClassification});
  HPO_CHECK(tensors.ok());
  auto parameters = model.named_parameters();
  for (const ParameterTensor& tensor : *tensors) {
    if (!IsFrozen(tensor, freezing) && IsRead(tensor, shape)) continue;
    torch::Tensor* const parameter = parameters.find(tensor.name);
    HPO_CHECK(parameter != nullptr);
    parameter->set_requires_grad(false);
  }
}

bool HasTrainedParameters(const torch::nn::Module& module) {
  const std::vector<torch::Tensor> parameters = module.parameters();
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const torch::Tensor& parameter) { return parameter.requires_grad(); });
}

}  // namespace hpo::trainer
