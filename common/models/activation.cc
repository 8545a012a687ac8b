#include "common/models/activation.h"

#include <utility>

namespace hpo {

std::optional<Activation> ActivationOf(absl::string_view hidden_act) {
  static constexpr std::pair<absl::string_view, Activation> kNames[] = {
      {"gelu", Activation::kGelu},         {"gelu_fast", Activation::kGeluTanh},
      {"gelu_new", Activation::kGeluTanh}, {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"relu", Activation::kRelu},         {"silu", Activation::kSilu},
      {"swish", Activation::kSilu},        {"tanh", Activation::kTanh},
  };
  for (const auto& [name, activation] : kNames) {
    if (hidden_act == name) return activation;
  }
  return std::nullopt;
}

}  // namespace hpo
