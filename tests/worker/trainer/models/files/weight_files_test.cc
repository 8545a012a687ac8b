#include "worker/trainer/models/files/weight_files.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "worker/trainer/models/files/safetensors_writer.h"

namespace hpo::trainer {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::SizeIs;

class WeightFilesTest : public testing::Test {
 protected:
  WeightFilesTest() {
    fs::create_directories(folder_);
    Write("a.safetensors", {"x", "y"});
    Write("b.safetensors", {"z"});
    WriteIndex({{"x", "a.safetensors"}, {"y", "a.safetensors"}, {"z", "b.safetensors"}});
  }
  ~WeightFilesTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return absl::StrCat(folder_.string(), "/", name);
  }

  void Write(const std::string& file, const std::vector<std::string>& names) {
    const auto bytes = [this] { return std::as_bytes(std::span(values_)); };
    std::vector<TensorSource> sources;
    for (const std::string& name : names)
      sources.push_back({name, TensorType::kFloat32, {2}, bytes});
    ASSERT_TRUE(WriteSafetensors(Path(file), sources, {}).ok());
  }

  void WriteIndex(const nlohmann::json& map) {
    std::ofstream(Path("model.safetensors.index.json"))
        << nlohmann::json{{"metadata", {{"total_size", 24}}}, {"weight_map", map}};
  }

  void ExpectError(absl::StatusCode code, const std::string& part) const {
    const absl::Status status = OpenWeights(folder_.string()).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    EXPECT_THAT(std::string(status.message()), HasSubstr(folder_.string()));
  }

  const std::vector<float> values_ = {1.0f, 2.0f};
  const fs::path folder_ = fs::path(testing::TempDir()) / absl::StrCat("weight_files_", RandomId());
};

TEST_F(WeightFilesTest, ShardsOpenTogether) {
  const auto files = OpenWeights(folder_.string());
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_THAT(*files, SizeIs(2));
  EXPECT_NE((*files)[0].Find("y"), nullptr);
  EXPECT_NE((*files)[1].Find("z"), nullptr);
}

TEST_F(WeightFilesTest, ASingleFileNeedsNoIndex) {
  Write("model.safetensors", {"w"});
  const auto files = OpenWeights(folder_.string());
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_THAT(*files, SizeIs(1));
  EXPECT_NE((*files)[0].Find("w"), nullptr);
}

TEST_F(WeightFilesTest, TheNamesOfTorchsWrappersAreLeftOut) {
  for (const std::string prefix :
       {"module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."}) {
    Write("model.safetensors", {prefix + "v", prefix + "module.w"});
    const auto files = OpenWeights(folder_.string());
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_NE((*files)[0].Find("v"), nullptr) << prefix;
    EXPECT_NE((*files)[0].Find("module.w"), nullptr) << prefix;
  }
  Write("model.safetensors", {"model.bert.v", "model.classifier.w"});
  EXPECT_NE((*OpenWeights(folder_.string()))[0].Find("bert.v"), nullptr);
  Write("model.safetensors", {"model.layers.0.v", "model.norm.w"});
  EXPECT_NE((*OpenWeights(folder_.string()))[0].Find("model.norm.w"), nullptr);
  Write("model.safetensors", {"module.v", "w"});
  EXPECT_NE((*OpenWeights(folder_.string()))[0].Find("module.v"), nullptr);
}

TEST_F(WeightFilesTest, AFolderWithoutWeightsNamesTheFile) {
  fs::remove(Path("model.safetensors.index.json"));
  ExpectError(absl::StatusCode::kNotFound, "/model.safetensors: cannot open");
}

TEST_F(WeightFilesTest, AMissingShardIsNamed) {
  fs::remove(Path("b.safetensors"));
  ExpectError(absl::StatusCode::kNotFound, "/b.safetensors: cannot open");
}

TEST_F(WeightFilesTest, ATruncatedShardIsNamed) {
  fs::resize_file(Path("a.safetensors"), fs::file_size(Path("a.safetensors")) - 3);
  ExpectError(absl::StatusCode::kInvalidArgument, "/a.safetensors: ");
}

TEST_F(WeightFilesTest, AShardHoldsWhatTheIndexSays) {
  Write("b.safetensors", {"other"});
  ExpectError(absl::StatusCode::kInvalidArgument, "/b.safetensors: tensor 'z' is missing");
  Write("b.safetensors", {"z", "zz"});
  ExpectError(absl::StatusCode::kInvalidArgument, "/b.safetensors: tensor 'zz' is not listed");
}

TEST_F(WeightFilesTest, ABrokenIndexIsRefused) {
  for (const char* text : {"", "[]", "{\"weight_map\": 3}", "{\"weight_map\": {}}"}) {
    std::ofstream(Path("model.safetensors.index.json")) << text;
    ExpectError(absl::StatusCode::kInvalidArgument, "model.safetensors.index.json: ");
  }
  WriteIndex({{"x", "../a.safetensors"}});
  ExpectError(absl::StatusCode::kInvalidArgument,
              "weight_map: x: expected a file of this folder, got the string \"../a.safetensors\"");
  WriteIndex({{"x", 3}});
  ExpectError(absl::StatusCode::kInvalidArgument, "got the integer 3");
}

}  // namespace
}  // namespace hpo::trainer
