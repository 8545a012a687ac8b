// What earlier studies expect of a space: a Gaussian process over each one's trials, as
// gp_sampler.h makes one. Fitted when first asked for, and again for another space. Safe from any
// thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sampler/api/sampler.h"
#include "sampler/gp/surrogate/input_space.h"
#include "sampler/gp/surrogate/surrogate_cache.h"

namespace hpo::sampler {

class PriorPosteriors {
 public:
  PriorPosteriors(std::vector<PriorStudy> studies, MemoryPolicy policy);

  const std::vector<PriorStudy>& studies() const { return studies_; }

  // By study, over `inputs` of `space`, of losses brought to mean 0 and variance 1; nullopt for one
  // that teaches nothing there.
  std::vector<std::optional<Posterior>> Get(const InputSpace& inputs, const CodedSpace& space,
                                            Bytes capacity) const;

 private:
  std::vector<PriorStudy> studies_;
  MemoryPolicy policy_;
  std::vector<std::unique_ptr<SurrogateCache>> caches_;  // by study
};

}  // namespace hpo::sampler
