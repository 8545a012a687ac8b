#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/cli/run_program.h"

namespace hpo::cli {
namespace {

using testing::HasSubstr;

class MemoryDataset : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("hpo-dataset-" + std::to_string(getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A reported case: 2,284 samples, one with 26 aspects, 1.60 on average.
  std::string Restaurant() const {
    const std::string path = folder_ / "restaurant.jsonl";
    std::ofstream out(path);
    for (int i = 0; i < 2284; ++i) {
      const int aspects = i == 100 ? 26 : i % 20 == 0 ? 5 : i % 5 < 2 ? 2 : 1;
      out << R"({"Text": "the wine was good", "Quadruplet": [)";
      for (int a = 0; a < aspects; ++a) out << (a > 0 ? "," : "") << R"({"Aspect": "wine"})";
      out << "]}\n";
    }
    return path;
  }

  static nlohmann::json Find(const nlohmann::json& report, const std::string& name) {
    for (const nlohmann::json& treatment : report["savings"]) {
      if (treatment["name"].get<std::string>().rfind(name, 0) == 0) return treatment;
    }
    ADD_FAILURE() << "no " << name << " in " << report["savings"];
    return {};
  }

  std::filesystem::path folder_;
};

TEST_F(MemoryDataset, DiagnosesTheOutlierOfTheSources) {
  const nlohmann::json report = RunOfflineJson(
      {"memory", "dataset", Restaurant(), "--passes", "6", "--card", "14GiB"}, /*status=*/3);
  EXPECT_EQ(report["samples"], 2284);
  EXPECT_EQ(report["items_key"], "Quadruplet");
  EXPECT_EQ(report["items"]["max"], 26);
  EXPECT_EQ(report["largest"][0], nlohmann::json({{"line", 101}, {"size", 26}}));
  EXPECT_EQ(report["as_it_is"]["rows"], 26 * 6);
  EXPECT_EQ(report["as_it_is"]["fits"], false);
  EXPECT_LT(report["useful_share"], 0.1);

  const nlohmann::json filtered = Find(report, "without samples above 5 items");
  EXPECT_EQ(filtered["rows"], 5 * 6);
  EXPECT_EQ(filtered["samples"], 2283);
  EXPECT_EQ(filtered["fits"], true);

  // Padding each batch to its own maximum does not help the batch that holds the outlier.
  const nlohmann::json padded = Find(report, "padded per batch");
  EXPECT_EQ(padded["required_bytes"], report["as_it_is"]["required_bytes"]);
  EXPECT_LT(padded["mean_rows"], 12.0);

  const nlohmann::json chunks = Find(report, "in chunks of ");
  EXPECT_EQ(chunks["fits"], true);
  EXPECT_LE(chunks["required_bytes"], chunks["usable_bytes"]);
  EXPECT_LT(chunks["rows"], 156);
  const nlohmann::json one = Find(report, "one row at a time");
  EXPECT_LT(one["required_bytes"], filtered["required_bytes"]);
}

TEST_F(MemoryDataset, SaysItInWords) {
  const ProgramResult result =
      RunOffline({"memory", "dataset", Restaurant(), "--batch-size", "4", "--passes", "6"});
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.out, HasSubstr("restaurant.jsonl: 2284 samples\n"));
  EXPECT_THAT(result.out, HasSubstr("4 x 26 Quadruplet x 6 passes = 624 rows of 128 tokens"));
  EXPECT_THAT(result.out, HasSubstr("1 of 2284 samples dropped (0.04 %)"));
  EXPECT_THAT(result.out, HasSubstr("does not fit 16.00 GiB as it is"));
}

TEST_F(MemoryDataset, ATextFileIsMeasuredInTokensOfItsModel) {
  std::ofstream(folder_ / "config.json")
      << R"({"model_type": "bert", "vocab_size": 8, "hidden_size": 64, "num_hidden_layers": 2,
  "num_attention_heads": 2, "intermediate_size": 256, "max_position_embeddings": 128,
  "type_vocab_size": 2})";
  std::ofstream(folder_ / "vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n";
  const std::string path = folder_ / "train.jsonl";
  {
    std::ofstream out(path);
    for (int i = 0; i < 300; ++i) {
      out << "{\"text\": \"a b c";
      if (i == 7) out << std::string(120, ' ') << "a b c a b c";
      out << "\", \"label\": " << i % 2 << "}\n";
    }
    std::string longest;
    for (int i = 0; i < 200; ++i) longest += "a ";
    out << "{\"text\": \"" << longest << "\", \"label\": 1}\n";
  }
  const nlohmann::json report =
      RunOfflineJson({"memory", "dataset", path, "--tokenizer", folder_, "--batch-size", "16",
                      "--card", "1GiB", "--device", "cpu"});
  EXPECT_TRUE(report["items_key"].is_null());
  EXPECT_EQ(report["tokens"]["p50"], 5);
  EXPECT_EQ(report["tokens"]["max"], 202);
  EXPECT_EQ(report["as_it_is"]["length"], 128);  // what the model takes
  EXPECT_EQ(report["as_it_is"]["rows"], 16);
  const nlohmann::json filtered = Find(report, "without samples above 5 tokens");
  EXPECT_EQ(filtered["length"], 16);
  EXPECT_EQ(filtered["samples"], 299);
  EXPECT_LT(filtered["required_bytes"], report["as_it_is"]["required_bytes"]);
}

TEST_F(MemoryDataset, FitsIsStatusZero) {
  EXPECT_EQ(RunOffline({"memory", "dataset", Restaurant(), "--card", "80GiB"}).status, 0);
}

TEST_F(MemoryDataset, RefusesInOneLine) {
  ExpectRefused({"memory", "dataset", folder_ / "absent.jsonl"}, 3, "absent.jsonl");
  ExpectRefused({"memory", "dataset", Restaurant(), "--items", "Aspects"}, 2, "'Aspects'");
  ExpectRefused({"memory", "dataset", Restaurant(), "--passes", "0"}, 2, "--passes");
  ExpectRefused({"memory", "dataset", Restaurant(), "--tokenizer", folder_}, 3, "config.json");
  ExpectRefused({"memory", "dataset"}, 2, "file");
}

}  // namespace
}  // namespace hpo::cli
