// How a word becomes tokens: the part of a tokenizer that knows the vocabulary.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace hpo::text {

// Immutable, so safe to share between threads.
class SubwordModel {
 public:
  virtual ~SubwordModel() = default;

  // Appends the tokens of `word`: well-formed UTF-8, not empty, as the splitters before it leave
  // it.
  virtual void Append(absl::string_view word, std::vector<int32_t>& ids) const = 0;
};

}  // namespace hpo::text
