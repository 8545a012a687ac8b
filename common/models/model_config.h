// Reads the config.json that a Hugging Face model comes with.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/models/model_spec.h"

namespace hpo {

// The shape in config.json's text. Keys that are absent or null have the value that the library
// gives them; those without which there is no shape must be there. A model_type that is not known
// gives a shape with nothing but its name: CheckKnownFamily refuses it.
// Source: the configuration classes of transformers 5.23.
//   InvalidArgument  not JSON, a key missing, of another type or out of range, heads that do not
//                    divide the hidden size, positions that are neither absolute nor DeBERTa's,
//                    cross-attention; names `origin`, the key and the value
absl::StatusOr<ModelShape> ParseModelConfig(absl::string_view json, absl::string_view origin);

}  // namespace hpo
