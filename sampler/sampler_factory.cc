#include "common/status.h"
#include "sampler/gaussian_process/gp_sampler.h"
#include "sampler/random_sampler.h"
#include "sampler/sampler.h"
#include "sampler/tpe_sampler.h"

namespace hpo {

std::unique_ptr<Sampler> MakeSampler(const StudySpec& study) {
  if (study.sampler.type == "random") return std::make_unique<RandomSampler>(study.sampler);
  if (study.sampler.type == "gp") {
    return std::make_unique<GpSampler>(study.sampler, study.memory.policy);
  }
  HPO_CHECK(study.sampler.type == "tpe");
  return std::make_unique<TpeSampler>(study.sampler, study.memory.policy);
}

}  // namespace hpo
