// The activation functions that models name in config.json.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace hpo {

enum class Activation { kRelu, kGelu, kGeluTanh, kSilu, kTanh };

// "gelu" is the exact one; "gelu_new", "gelu_fast" and "gelu_pytorch_tanh" its approximation by
// tanh. nullopt: none of those above.
std::optional<Activation> ActivationOf(absl::string_view hidden_act);

}  // namespace hpo
