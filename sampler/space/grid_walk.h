// The configurations of a space whose modelled parameters all have values that can be counted, one
// after another: as an odometer, the first parameter of the space turning slowest, numbers upwards
// and choices in their order. Conditions and narrowings hold; a parameter that is not there, and
// one that is not modelled, has no code (NaN). One owner.
#pragma once

#include <optional>

#include "sampler/space/coded_space.h"

namespace hpo::sampler {

class GridWalk {
 public:
  // `space` must outlive this object.
  explicit GridWalk(const CodedSpace& space) : space_(space), codes_(space.size()) {}

  // Moves to the next configuration, first to the first; false past the last.
  bool Next();

  const Codes& codes() const { return codes_; }

 private:
  // The code of `parameter` after its present one, or its first; nullopt where there is none.
  std::optional<double> CodeAfter(size_t parameter, bool first) const;
  // Moves the last parameter before `end` that can move; the place after it. nullopt: none can.
  std::optional<size_t> Step(size_t end);

  const CodedSpace& space_;
  Codes codes_;
  bool begun_ = false;
};

}  // namespace hpo::sampler
