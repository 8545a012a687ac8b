#include "common/study/unread_parameters.h"

#include <string>
#include <vector>

#include "common/study/model_catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Unread(const ModelShape& shape) {
  std::vector<std::string> names;
  const std::vector<ParameterTensor> tensors = ParameterTensors(shape, {}).value();
  for (const ParameterTensor& tensor : tensors) {
    if (!IsRead(tensor, shape)) names.push_back(tensor.name);
  }
  return names;
}

TEST(IsRead, EverythingIsButRelativePositionsWithoutATerm) {
  EXPECT_THAT(Unread(*KnownModelShape("bert-base-uncased")), IsEmpty());
  ModelShape deberta = *KnownModelShape("microsoft/deberta-v3-base");
  EXPECT_THAT(Unread(deberta), IsEmpty());
  deberta.relative.content_to_position = false;
  EXPECT_THAT(Unread(deberta), IsEmpty());
  deberta.relative.position_to_content = false;
  EXPECT_THAT(Unread(deberta), ElementsAre("encoder.rel_embeddings.weight",
                                           "encoder.LayerNorm.weight", "encoder.LayerNorm.bias"));
}

}  // namespace
}  // namespace hpo
