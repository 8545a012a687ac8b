#include "common/memory/model_trace.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/memory/encoder_trace.h"
#include "common/status.h"

namespace hpo {

absl::StatusOr<std::unique_ptr<ModelTrace>> MakeModelTrace(TraceOps& ops, const ModelShape& shape,
                                                           const TaskHead& head) {
  HPO_ASSIGN_OR_RETURN(const std::vector<ParameterTensor> tensors, ParameterTensors(shape, head));
  if (head.kind != TaskHead::Kind::kSequenceClassification) {
    return absl::InvalidArgumentError("head: expected one for classification");
  }
  switch (*ModelFamilyOf(shape.family)) {
    case ModelFamily::kBert:
    case ModelFamily::kRoberta:
      return MakeEncoderTrace(ops, shape, head, tensors);
    case ModelFamily::kDeberta:
      return MakeDebertaTrace(ops, shape, head, tensors);
    case ModelFamily::kDistilBert:
    case ModelFamily::kElectra:
    case ModelFamily::kGpt2:
    case ModelFamily::kLlama:
    case ModelFamily::kQwen2:
      break;
  }
  return absl::UnimplementedError(
      absl::StrCat("model_type: expected bert, roberta, xlm-roberta, camembert or deberta-v2 (the "
                   "families with a "
                   "trace), got ",
                   shape.family));
}

}  // namespace hpo
