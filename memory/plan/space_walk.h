// The configurations of a search space as far as they matter to memory. Continuous parameters
// (model.dropout) stand at their upper end, where they need most. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/space/params.h"
#include "common/space/search_space.h"

namespace hpo::memory {

// `names` of parameters, with those that decide whether these exist or how far they go.
std::set<std::string> WithParents(const SearchSpace& space, std::set<std::string> names);

// Safe from any thread; `space` outlives it.
class SpaceWalk {
 public:
  explicit SpaceWalk(const SearchSpace& space);

  // Those that memory depends on, and those that decide whether these exist or how far they go; in
  // the space's order.
  const std::vector<const Parameter*>& parameters() const { return parameters_; }

  // Every configuration, until `visit` returns false. False: it did.
  using Visit = std::function<bool(const ParamMap&)>;
  bool All(const Visit& visit) const;

  // One configuration, each value as likely as the others; nullopt where constraints left nothing
  // to one of its parameters.
  std::optional<ParamMap> Draw(Rng& rng) const;

 private:
  bool From(size_t index, ParamMap& params, const Visit& visit) const;

  const SearchSpace& space_;
  const std::vector<const Parameter*> parameters_;
};

}  // namespace hpo::memory
