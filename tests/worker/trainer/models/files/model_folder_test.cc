#include "worker/trainer/models/files/model_folder.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/files/read_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "worker/trainer/models/files/safetensors.h"
#include "worker/trainer/models/layers/layers.h"

namespace hpo::trainer {
namespace {

namespace fs = std::filesystem;
using testing::UnorderedElementsAre;

class ModelFolderTest : public testing::Test {
 protected:
  ModelFolderTest() {
    fs::create_directories(root_ / "source");
    std::ofstream(root_ / "source/vocab.txt") << "[PAD]\n";
    std::ofstream(root_ / "source/tokenizer_config.json") << "{}";
  }
  ~ModelFolderTest() override { fs::remove_all(root_); }

  ModelFolderContents Contents() const {
    return {.source = (root_ / "source").string(),
            .config_json = R"({"model_type":"bert","architectures":["BertModel"],"x":1})",
            .role = {.architecture = "ForSequenceClassification",
                     .problem_type = "single_label_classification"},
            .labels = {"no", "yes"},
            .head_sizes = {},
            .pad_id = 7};
  }

  std::string Folder() const { return (root_ / "best").string(); }
  nlohmann::json Config() const {
    return nlohmann::json::parse(std::ifstream(root_ / "best/config.json"));
  }
  std::vector<std::string> Names(const fs::path& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  const fs::path root_ = fs::path(testing::TempDir()) / absl::StrCat("model_folder_", RandomId());
  Linear model_{2, 3, torch::kCPU};
};

TEST_F(ModelFolderTest, HoldsWhatTransformersReads) {
  ASSERT_TRUE(WriteModelFolder(*model_, Contents(), Folder()).ok());
  EXPECT_THAT(Names(root_ / "best"), UnorderedElementsAre("config.json", "model.safetensors",
                                                          "vocab.txt", "tokenizer_config.json"));
  const nlohmann::json config = Config();
  EXPECT_EQ(config["architectures"], nlohmann::json({"BertForSequenceClassification"}));
  EXPECT_EQ(config["num_labels"], 2);
  EXPECT_EQ(config["id2label"]["1"], "yes");
  EXPECT_EQ(config["label2id"]["no"], 0);
  EXPECT_EQ(config["problem_type"], "single_label_classification");
  EXPECT_EQ(config["x"], 1);
  EXPECT_FALSE(config.contains("hpo_head_sizes"));
  const auto weights = SafetensorsFile::Open(Folder() + "/model.safetensors");
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->metadata().at("format"), "pt");
}

TEST_F(ModelFolderTest, HoldsTheQuadrupletsWhereThereAreAny) {
  ModelFolderContents contents = Contents();
  contents.quadruplets = "{}\n";
  ASSERT_TRUE(WriteModelFolder(*model_, contents, Folder()).ok());
  EXPECT_EQ(*ReadFile(Folder() + "/quadruplets.jsonl"), "{}\n");
}

TEST_F(ModelFolderTest, NamesTheLibrarysClassOfTheFamily) {
  ModelFolderContents contents = Contents();
  contents.config_json = R"({"model_type":"xlm-roberta"})";
  ASSERT_TRUE(WriteModelFolder(*model_, contents, Folder()).ok());
  EXPECT_EQ(Config()["architectures"], nlohmann::json({"XLMRobertaForSequenceClassification"}));
  contents.config_json = R"({"model_type":"qwen2"})";
  ASSERT_TRUE(WriteModelFolder(*model_, contents, Folder()).ok());
  EXPECT_EQ(Config()["architectures"], nlohmann::json({"Qwen2ForSequenceClassification"}));
}

TEST_F(ModelFolderTest, TellsAClassifierOfTheLastTokenWhatFollowsIt) {
  ModelFolderContents contents = Contents();
  ASSERT_TRUE(WriteModelFolder(*model_, contents, Folder()).ok());
  EXPECT_FALSE(Config().contains("pad_token_id"));
  contents.config_json = R"({"model_type":"gpt2","pad_token_id":null})";
  ASSERT_TRUE(WriteModelFolder(*model_, contents, Folder()).ok());
  EXPECT_EQ(Config()["pad_token_id"], 7);
}

TEST_F(ModelFolderTest, ReplacesTheFolderThatWasThere) {
  ASSERT_TRUE(WriteModelFolder(*model_, Contents(), Folder()).ok());
  ModelFolderContents other = Contents();
  other.labels = {"a", "b", "c"};
  other.role.problem_type = "multi_label_classification";
  other.head_sizes = {16};
  std::ofstream(root_ / "best/stale") << "x";
  ASSERT_TRUE(WriteModelFolder(*model_, other, Folder()).ok());
  EXPECT_EQ(Config()["num_labels"], 3);
  EXPECT_EQ(Config()["problem_type"], "multi_label_classification");
  EXPECT_EQ(Config()["hpo_head_sizes"], nlohmann::json({16}));
  EXPECT_FALSE(fs::exists(root_ / "best/stale"));
  EXPECT_THAT(Names(root_), UnorderedElementsAre("source", "best"));
}

TEST_F(ModelFolderTest, AFailureLeavesNothingHalfWritten) {
  std::ofstream(root_ / "file") << "x";
  EXPECT_FALSE(WriteModelFolder(*model_, Contents(), (root_ / "file" / "best").string()).ok());
  EXPECT_THAT(Names(root_), UnorderedElementsAre("source", "file"));
}

}  // namespace
}  // namespace hpo::trainer
