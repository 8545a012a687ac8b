#include "sampler/factory/make_sampler.h"

#include <utility>

#include "absl/strings/match.h"
#include "common/base/status.h"
#include "sampler/cma_es/cma_es_sampler.h"
#include "sampler/factory/auto_sampler.h"
#include "sampler/gp/gp_sampler.h"
#include "sampler/simple/grid_sampler.h"
#include "sampler/simple/qmc_sampler.h"
#include "sampler/simple/random_sampler.h"
#include "sampler/space/finite_space.h"
#include "sampler/tpe/tpe_sampler.h"

namespace hpo::sampler {
namespace {

std::unique_ptr<Sampler> MakeProposer(const StudySpec& study, std::vector<PriorStudy> priors) {
  if (study.sampler.type == "random") return std::make_unique<RandomSampler>(study.sampler);
  if (study.sampler.type == "gp") {
    return std::make_unique<GpSampler>(study, std::move(priors));
  }
  if (study.sampler.type == "cma-es") {
    return std::make_unique<CmaEsSampler>(study.sampler, study.memory.policy);
  }
  if (study.sampler.type == "qmc") return std::make_unique<QmcSampler>(study.sampler);
  if (study.sampler.type == "grid") return std::make_unique<GridSampler>(study.sampler);
  if (study.sampler.type == "auto") return std::make_unique<AutoSampler>(study, std::move(priors));
  HPO_CHECK(absl::StartsWith(study.sampler.type, "tpe"));
  return std::make_unique<TpeSampler>(study, std::move(priors));
}

}  // namespace

std::unique_ptr<Sampler> MakeSampler(const StudySpec& study, std::vector<PriorStudy> priors) {
  std::unique_ptr<Sampler> proposer = MakeProposer(study, std::move(priors));
  if (!CanRepeat(study.space)) return proposer;
  return std::make_unique<WithoutRepetition>(std::move(proposer), study.sampler.seed);
}

}  // namespace hpo::sampler
