// Proposals for another process, which keeps the trials (python/src/hpo/optuna). A request is a
// line of JSON, and each has one answer, a line too:
//
//   in   {"model": "1", "study": "...", "trials": [...], "number": 7, "fixed": {"x": 0.5},
//         "part": true, "close": ["0"]}
//   out  {"params": {"x": 0.5, "y": 3}, "sampler": "auto: gp (34 trials)", "all_tried": true}
//   out  {"error": "...", "code": "OUT_OF_RANGE"}
//
//   model   which of the models, each a study's space with the trials that it was given
//   study   with the model's first request: the text of a study file (docs/study-file.md)
//   trials  to add, or to replace those of the same number:
//           {"number": 3, "params": {...}, "state": "RUNNING" | "COMPLETED" | "PRUNED" | "FAILED",
//            "losses": [0.25], "reports": [[step, loss], ...], "excesses": [-0.5, ...]}
//           losses: smaller is better, null is the worst one. excesses: by constraint, how far
//           beyond its limit.
//   number  the trial to propose; with the study's seed it keys the random numbers
//   fixed   values that the proposal takes
//   part    whether trials have parameters beside those of the study: then a configuration may be
//           proposed again while there are others
//   close   models that are no longer needed
//
// "all_tried": every configuration with the fixed values has been tried, so that the proposal
// repeats one. A grid has an error instead.
// The same requests have the same answers. A model whose request could not be read is closed.
// One owner thread.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/study/study.h"
#include "nlohmann/json_fwd.hpp"
#include "sampler/api/sampler.h"

namespace hpo::sampler {

class ProposalService {
 public:
  // The answer to a request, a line without its end.
  std::string Answer(absl::string_view request);

 private:
  struct Model {
    StudySpec study;
    std::unique_ptr<Sampler> sampler;
    int64_t sequence = 0;
  };

  //   InvalidArgument  the request is not as above, a parameter is unknown or a value outside its
  //                    domain
  //   as Sampler::Suggest
  absl::StatusOr<nlohmann::json> Propose(const nlohmann::json& request, const std::string& name);
  absl::Status Learn(const nlohmann::json& request, Model& model);

  std::map<std::string, Model> models_;
};

// Answers each line of `in` until it ends.
void AnswerLines(std::istream& in, std::ostream& out);

}  // namespace hpo::sampler
