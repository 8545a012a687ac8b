// The coordinates in which densities are estimated: one axis per modelled parameter that has more
// than one value, except that train.batch_size and train.grad_accum may be one derived axis.
//
// Quality is modelled over the effective batch E = batch * accumulation (effective_batch.h). What
// fits is not a function of E, so the view of memory keeps the two apart. A draw takes a target E
// from the axis; the first of the two takes a value that can come nearest to it, ties at random,
// and the second completes the product.
//
// Immutable; safe to share between threads.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "common/base/random.h"
#include "common/space/params.h"
#include "common/space/search_space.h"
#include "sampler/space/effective_batch.h"
#include "sampler/space/model_view.h"
#include "sampler/space/numeric_scale.h"
#include "sampler/tpe/parzen_estimator.h"

namespace hpo::sampler {

// Which axes are one group of the density: all of them, or those of parameters that exist under the
// same conditions.
enum class Grouping { kAll, kByConditions };

class ModelSpace {
 public:
  // `space` must outlive this object.
  ModelSpace(const SearchSpace& space, ModelView view, Grouping grouping = Grouping::kAll);

  const std::vector<ParzenAxis>& axes() const { return axes_; }

  // `params` as a point. Parameters that are absent, or have a value outside their domain (a range
  // or a choice that this space does not have), are absent from the point.
  Point Encode(const ParamMap& params) const;

  // A complete configuration. Each of its parameters comes with probability `together` from one
  // component of `density` (over these axes) for all of the group, so that what was good together
  // stays together, else from a component of its own, so that what was good in different
  // observations comes together. Every kernel is truncated to the domain that the values drawn
  // before it allow; parameters without an axis are drawn uniformly. nullopt where the constraints
  // come to leave a parameter no value.
  std::optional<ParamMap> Draw(const ParzenEstimator& density, double together, Rng& rng) const;

 private:
  // How one parameter of the space is modelled. No axis: drawn uniformly.
  struct Role {
    std::optional<size_t> axis;
    std::optional<NumericScale> scale;  // of a float or int parameter
    bool narrowed = false;              // by what other parameters are
    // What the whole domain comes to: positions of numbers, indices of choices.
    Interval positions;
    std::vector<size_t> indices;
  };

  // One draw under way.
  struct DrawState {
    const ParzenEstimator& density;
    Rng& rng;
    double together;
    // By group: the component that its parameters have in common, once it is drawn.
    std::vector<std::optional<size_t>> bases;
    ParamMap params = {};
    double target_batch = 0.0;  // where there is a pair
  };

  size_t AddAxis(ParzenAxis axis, const Parameter& parameter);
  size_t GroupOf(const Parameter& parameter);
  bool InPair(size_t parameter) const;
  Coordinate EncodeOne(size_t parameter, const ParamValue& value) const;
  Coordinate EncodePair(const ParamMap& params) const;
  size_t ComponentFor(size_t axis, DrawState& state) const;
  std::optional<ParamValue> DrawValue(size_t parameter, const Domain& allowed,
                                      DrawState& state) const;
  std::optional<ParamValue> DrawOfPair(size_t parameter, const Domain& allowed,
                                       DrawState& state) const;

  const SearchSpace& space_;
  Grouping grouping_;
  // By group: a parameter that exists under its conditions.
  std::vector<const Parameter*> groups_;
  std::vector<ParzenAxis> axes_;
  std::vector<Role> roles_;  // by parameter
  std::optional<EffectiveBatchPair> pair_;
  std::optional<NumericScale> pair_scale_;
  size_t pair_axis_ = 0;
};

}  // namespace hpo::sampler
