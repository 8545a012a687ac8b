// Configurations compared by what a model sees of them. Another value of a parameter that is not
// modelled (a seed) makes no configuration new. Immutable; safe to share between threads.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "common/space/params.h"
#include "common/space/search_space.h"
#include "sampler/api/history.h"

namespace hpo::sampler {

class ModelledPart {
 public:
  explicit ModelledPart(const SearchSpace& space);

  // Whether there is more than the modelled part.
  bool leaves_out() const { return !left_out_.empty(); }

  // Equal up to parameters that the space does not model. Equal ones have one hash.
  bool Same(const ParamMap& a, const ParamMap& b) const;
  size_t Hash(const ParamMap& params) const;

 private:
  std::set<std::string> left_out_;
};

// Whether a trial in any state has had the modelled part of `params`. O(trials).
bool Tried(const History& history, const ModelledPart& part, const ParamMap& params);

}  // namespace hpo::sampler
