// What a worker finds of models and data on its disk.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files/read_file.h"
#include "common/files/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/full_disk.h"
#include "worker/agent/catalog/data_catalog.h"
#include "worker/agent/catalog/model_catalog.h"

namespace hpo::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kConfig[] = R"({"model_type": "bert", "vocab_size": 8, "hidden_size": 8,
  "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
  "max_position_embeddings": 32, "type_vocab_size": 2})";

class CatalogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(::testing::TempDir()) /
        (std::string("catalog-") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "models");
    fs::create_directories(folder_ / "cache");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const std::string& path, const std::string& content) {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path, std::ios::binary) << content;
  }
  // A BERT folder with a vocabulary of eight.
  void WriteModel(const std::string& name, const std::string& last_word = "beta") {
    Write("models/" + name + "/config.json", kConfig);
    Write("models/" + name + "/vocab.txt",
          "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nalpha\n" + last_word + "\n");
  }
  ModelCatalog Scan() {
    absl::StatusOr<ModelCatalog> catalog = ScanModels((folder_ / "models").string());
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    return *std::move(catalog);
  }
  DataCatalogOptions Options() {
    return {.folder = (folder_ / "data").string(), .cache_folder = (folder_ / "cache").string()};
  }
  size_t NumCached() {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_ / "cache"), fs::directory_iterator()));
  }

  fs::path folder_;
};

// ---- Models ----

TEST_F(CatalogTest, ModelsAreFoldersWithAConfigAlsoOneLevelDown) {
  WriteModel("plain");
  WriteModel("org/inner");
  WriteModel("too/deep/down");
  Write("models/not-a-model/readme.txt", "x");
  const ModelCatalog catalog = Scan();
  ASSERT_THAT(catalog.models, SizeIs(2));
  EXPECT_EQ(catalog.models[0].name, "org/inner");
  EXPECT_EQ(catalog.models[1].name, "plain");
  EXPECT_EQ(catalog.models[1].shape.hidden_size, 8);
  EXPECT_FALSE(catalog.models[1].has_weights);
  EXPECT_THAT(catalog.warnings, IsEmpty());
}

TEST_F(CatalogTest, ABrokenModelIsNamedAndTheOthersStay) {
  WriteModel("good");
  Write("models/broken/config.json", R"({"model_type": "bert", "hidden_size": "wide"})");
  Write("models/no-vocabulary/config.json", kConfig);
  const ModelCatalog catalog = Scan();
  ASSERT_THAT(catalog.models, SizeIs(1));
  EXPECT_EQ(catalog.models[0].name, "good");
  ASSERT_THAT(catalog.warnings, SizeIs(2));
  EXPECT_THAT(catalog.warnings[0], HasSubstr("model broken"));
  EXPECT_THAT(catalog.warnings[1], HasSubstr("model no-vocabulary"));
  EXPECT_THAT(catalog.warnings[1], HasSubstr("vocab.txt"));
}

TEST_F(CatalogTest, WhyAFolderIsLeftOutIsKnownByItsName) {
  WriteModel("good");
  WriteModel("org/inner");
  WriteModel("pointer");
  Write("models/pointer/model.safetensors",
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 440449768\n");
  Write("models/broken/config.json", "{model_type");
  Write("models/empty/readme.txt", "x");
  const ModelCatalog catalog = Scan();
  ASSERT_THAT(catalog.models, SizeIs(2));
  ASSERT_THAT(catalog.left_out, SizeIs(3));
  EXPECT_THAT(catalog.left_out.at("pointer"),
              HasSubstr("model.safetensors is a pointer of Git LFS, not the file itself"));
  EXPECT_THAT(catalog.left_out.at("broken"), HasSubstr("config.json"));
  EXPECT_THAT(catalog.left_out.at("empty"), HasSubstr("holds no config.json"));
}

TEST_F(CatalogTest, LinksToNowhereAreNamed) {
  WriteModel("weights");
  fs::create_symlink("../../blobs/4d", folder_ / "models/weights/model.safetensors");
  fs::create_directories(folder_ / "models/config");
  fs::create_symlink("../../blobs/5e", folder_ / "models/config/config.json");
  WriteModel("cache/snapshots/4d");
  const ModelCatalog catalog = Scan();
  EXPECT_THAT(catalog.models, IsEmpty());
  EXPECT_THAT(catalog.left_out.at("weights"),
              HasSubstr("model.safetensors is a link to ../../blobs/4d, which does not exist"));
  EXPECT_THAT(catalog.left_out.at("config"),
              HasSubstr("config.json is a link to ../../blobs/5e, which does not exist"));
  EXPECT_THAT(catalog.left_out.at("cache"), HasSubstr("cache/snapshots/4d: link that folder"));
  Write("data/here.csv", "text,label\n");
  fs::create_symlink("gone.csv", folder_ / "data/link.csv");
  const auto scan = DataCatalog(Options()).Measure({{.study = "s",
                                                     .train = "link.csv",
                                                     .validation = "here.csv",
                                                     .task = "text-classification"}},
                                                   {});
  EXPECT_THAT(scan.left_out.at("link.csv"), HasSubstr("a link to gone.csv, which does not exist"));
}

TEST_F(CatalogTest, AFileOfTorchIsTakenForNoWeightsAndAHeaderForNoPickle) {
  WriteModel("pickle");
  Write("models/pickle/model.safetensors", std::string("\x80\x02}q", 4) + std::string(64, 'x'));
  WriteModel("good");
  Write("models/good/model.safetensors", std::string("\x80\x02\0\0\0\0\0\0{\"", 10));
  const ModelCatalog catalog = Scan();
  EXPECT_THAT(catalog.left_out.at("pickle"),
              HasSubstr("model.safetensors is a file of torch.save by another name"));
  EXPECT_FALSE(catalog.left_out.contains("good"));
}

TEST_F(CatalogTest, WeightsThatAreNotReadAreNamed) {
  WriteModel("bin");
  Write("models/bin/pytorch_model.bin", "PK");
  WriteModel("shards");
  Write("models/shards/model.safetensors.index.json",
        R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})");
  Write("models/shards/one.safetensors", "weights");
  Write("models/adapter/adapter_config.json", "{}");
  const ModelCatalog catalog = Scan();
  EXPECT_THAT(catalog.left_out.at("bin"),
              HasSubstr("it has pytorch_model.bin, but no model.safetensors"));
  EXPECT_THAT(catalog.left_out.at("bin"), HasSubstr("save_pretrained('"));
  ASSERT_THAT(catalog.models, SizeIs(1));
  EXPECT_EQ(catalog.models[0].name, "bin") << "for studies that begin with random weights";
  EXPECT_THAT(catalog.left_out.at("shards"), HasSubstr("two.safetensors is missing"));
  EXPECT_THAT(catalog.left_out.at("adapter"), HasSubstr("merge it into its base model"));
}

// A user's own trainer may run what we know nothing of.
TEST_F(CatalogTest, AModelOfAnUnknownTypeIsOfferedByName) {
  Write("models/theirs/config.json", R"({"model_type": "t5", "d_model": 512})");
  const ModelCatalog catalog = Scan();
  EXPECT_THAT(catalog.warnings, IsEmpty());
  ASSERT_THAT(catalog.models, SizeIs(1));
  EXPECT_EQ(catalog.models[0].shape, ModelShape{.family = "t5"});
  EXPECT_EQ(catalog.models[0].tokenizer_digest, "");
}

TEST_F(CatalogTest, AKnownModelWhoseTokenizerCannotBeUsedIsTold) {
  WriteModel("tiny");
  Write("models/tiny/tokenizer.json", R"({"model": {"type": "CharBased"}})");
  const ModelCatalog catalog = Scan();
  ASSERT_THAT(catalog.warnings, SizeIs(1));
  EXPECT_THAT(catalog.warnings[0],
              HasSubstr("model tiny needs --trainer with a program of your own"));
  EXPECT_THAT(catalog.warnings[0], HasSubstr("CharBased"));
  ASSERT_THAT(catalog.models, SizeIs(1));
  EXPECT_EQ(catalog.models[0].tokenizer_digest, "");
}

TEST_F(CatalogTest, WeightsChangeTheDigestAndAreSeen) {
  WriteModel("m");
  const ModelFacts without = Scan().models.at(0);
  Write("models/m/model.safetensors", "weights");
  const ModelFacts with = Scan().models.at(0);
  EXPECT_TRUE(with.has_weights);
  EXPECT_NE(with.digest, without.digest);
  EXPECT_EQ(with.tokenizer_digest, without.tokenizer_digest);
  EXPECT_THAT(with.digest, SizeIs(64));
}

TEST_F(CatalogTest, WeightsInShardsAreSeenByTheirIndex) {
  WriteModel("m");
  Write("models/m/model.safetensors.index.json", R"({"weight_map": {}})");
  EXPECT_TRUE(Scan().models.at(0).has_weights);
}

TEST_F(CatalogTest, ModelsOfOneVocabularyShareATokenizer) {
  WriteModel("one");
  WriteModel("two");
  WriteModel("other", "gamma");
  const ModelCatalog catalog = Scan();
  EXPECT_THAT(catalog.tokenizers, SizeIs(2));
  for (const ModelFacts& model : catalog.models) {
    EXPECT_TRUE(catalog.tokenizers.contains(model.tokenizer_digest)) << model.name;
  }
}

TEST_F(CatalogTest, NoFolderIsNoModelsAWrongOneAnError) {
  EXPECT_THAT(ScanModels("")->models, IsEmpty());
  const absl::Status status = ScanModels((folder_ / "nowhere").string()).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("nowhere"));
}

TEST_F(CatalogTest, AModelsFolderIsAbsoluteAndBelowTheRoot) {
  WriteModel("m");
  fs::create_directories(folder_ / "elsewhere");
  Write("elsewhere/config.json", kConfig);
  Write("elsewhere/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nalpha\nbeta\n");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "models/linked");
  fs::create_directory_symlink(folder_, folder_ / "models/out");
  const ModelCatalog catalog = Scan();
  const std::string root = (folder_ / "models").string();
  EXPECT_EQ(*ModelFolder(catalog, "m"), root + "/m");
  EXPECT_EQ(*ModelFolder(catalog, "org/absent"), root + "/org/absent");
  EXPECT_EQ(*ModelFolder(catalog, "linked"), root + "/linked") << "the worker's own user put it";
  EXPECT_EQ(*ModelFolder(catalog, ""), "");
  EXPECT_EQ(*ModelFolder({}, "m"), "");
  for (const char* name : {"..", "../cache", "/etc", "m/../../cache", "out/cache"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(ModelFolder(catalog, name).status())) << name;
  }
}

TEST_F(CatalogTest, AShortNameFindsTheFolderOfTheModel) {
  WriteModel("bert-large-uncased");
  const std::string root = (folder_ / "models").string();
  EXPECT_EQ(*ModelFolder(Scan(), "bert-large"), root + "/bert-large-uncased");
  WriteModel("bert-large");
  EXPECT_EQ(*ModelFolder(Scan(), "bert-large"), root + "/bert-large") << "its own comes first";
}

// ---- Data ----

constexpr char kRows[] =
    "{\"text\": \"a alpha\", \"label\": \"yes\"}\n"
    "{\"text\": \"a\", \"label\": \"no\"}\n";

TEST_F(CatalogTest, MeasuresWhatStudiesNeedOnce) {
  WriteModel("m");
  Write("data/train.jsonl", kRows);
  Write("data/valid.jsonl", "{\"text\": \"a\", \"label\": \"yes\"}\n");
  const ModelCatalog models = Scan();
  const DataCatalog::Scan scan = DataCatalog(Options()).Measure(
      {{"one", "train.jsonl", "valid.jsonl"}, {"two", "train.jsonl", "valid.jsonl"}},
      models.tokenizers);
  ASSERT_THAT(scan.facts, SizeIs(2));
  const DataSetFacts& train = scan.facts[0];
  EXPECT_EQ(train.name, "train.jsonl");
  EXPECT_EQ(train.digest, *Sha256File((folder_ / "data/train.jsonl").string()));
  EXPECT_EQ(train.rows, 2);
  EXPECT_THAT(train.labels, ElementsAre("no", "yes"));
  // [CLS] a alpha [SEP]; [CLS] a [SEP]
  EXPECT_EQ(train.lengths.at(models.models[0].tokenizer_digest), (LengthHistogram{{3, 1}, {4, 1}}));
  EXPECT_THAT(scan.complete_studies, ElementsAre("one", "two"));
  EXPECT_THAT(scan.failures, IsEmpty());
}

// The lengths of texts without labels count for a task that has none.
TEST_F(CatalogTest, ATasksRowsAreReadAsItWants) {
  WriteModel("m");
  Write("data/texts.jsonl", "{\"text\": \"a\"}\n{\"text\": \"a alpha\", \"score\": 0.5}\n");
  const ModelCatalog models = Scan();
  const DataCatalog catalog(Options());
  const auto measure = [&](const char* task) {
    return catalog.Measure({{"s", "texts.jsonl", "texts.jsonl", task}}, models.tokenizers);
  };
  for (const char* task : {"language-modeling", "text-regression"}) {
    const DataCatalog::Scan scan = measure(task);
    ASSERT_THAT(scan.facts, SizeIs(1)) << task;
    EXPECT_EQ(scan.facts[0].rows, 2);
    EXPECT_THAT(scan.facts[0].labels, IsEmpty());
    EXPECT_EQ(scan.facts[0].lengths.at(models.models[0].tokenizer_digest),
              (LengthHistogram{{3, 1}, {4, 1}}));
  }
  // Nor is what one task made of the file another's.
  EXPECT_THAT(measure("text-classification").failures, SizeIs(1));
}

TEST_F(CatalogTest, FactsComeFromTheCacheUntilTheFileOrAVocabularyIsNew) {
  WriteModel("m");
  Write("data/train.jsonl", kRows);
  const std::vector<StudyData> studies = {{"s", "train.jsonl", "train.jsonl"}};
  const DataCatalog catalog(Options());
  const ModelCatalog models = Scan();
  const DataCatalog::Scan measured = catalog.Measure(studies, models.tokenizers);
  ASSERT_EQ(NumCached(), 1u);

  // A marked cache shows whether it was read.
  const fs::path cached = fs::directory_iterator(folder_ / "cache")->path();
  DataSetFacts marked = measured.facts.at(0);
  marked.rows = 4711;
  std::ofstream(cached) << DataSetFactsToJson(marked).dump();
  EXPECT_EQ(catalog.Measure(studies, models.tokenizers).facts.at(0).rows, 4711);

  WriteModel("other", "gamma");
  const ModelCatalog more = Scan();
  const DataCatalog::Scan again = catalog.Measure(studies, more.tokenizers);
  EXPECT_EQ(again.facts.at(0).rows, 2);
  EXPECT_THAT(again.facts.at(0).lengths, SizeIs(2));

  Write("data/train.jsonl", "{\"text\": \"a\", \"label\": \"yes\"}\n");
  EXPECT_EQ(catalog.Measure(studies, more.tokenizers).facts.at(0).rows, 1);
  EXPECT_EQ(NumCached(), 2u);
}

TEST_F(CatalogTest, ABrokenCacheIsMeasuredAgain) {
  Write("data/train.jsonl", kRows);
  Write("cache/" + *Sha256File((folder_ / "data/train.jsonl").string()) + ".json", "{\"rows\":");
  const DataCatalog::Scan scan =
      DataCatalog(Options()).Measure({{"s", "train.jsonl", "train.jsonl"}}, {});
  EXPECT_EQ(scan.facts.at(0).rows, 2);
}

TEST_F(CatalogTest, AFullDiskKeepsNothingInPart) {
  WriteModel("m");
  Write("data/train.jsonl", kRows);
  const std::vector<StudyData> studies = {{"s", "train.jsonl", "train.jsonl"}};
  const DataCatalog catalog(Options());
  {
    const FullDisk full(16);
    EXPECT_THAT(catalog.Measure(studies, Scan().tokenizers).facts, SizeIs(1));
  }
  EXPECT_EQ(NumCached(), 0u);

  catalog.Measure(studies, Scan().tokenizers);
  ASSERT_EQ(NumCached(), 1u);
  const std::string cached = fs::directory_iterator(folder_ / "cache")->path().string();
  const std::string before = ReadFile(cached).value();
  WriteModel("other", "gamma");
  {
    const FullDisk full(16);
    EXPECT_THAT(catalog.Measure(studies, Scan().tokenizers).facts.at(0).lengths, SizeIs(2));
  }
  EXPECT_EQ(ReadFile(cached).value(), before);
}

TEST_F(CatalogTest, AMissingFileIsNamedAndItsStudyIsNotComplete) {
  Write("data/train.jsonl", kRows);
  const DataCatalog::Scan scan = DataCatalog(Options()).Measure(
      {{"has", "train.jsonl", "train.jsonl"}, {"lacks", "train.jsonl", "valid.jsonl"}}, {});
  EXPECT_THAT(scan.complete_studies, ElementsAre("has"));
  ASSERT_THAT(scan.failures, SizeIs(1));
  EXPECT_THAT(std::string(scan.failures[0].message()),
              HasSubstr((folder_ / "data/valid.jsonl").string()));
}

TEST_F(CatalogTest, FlagsBeatTheFolder) {
  DataCatalogOptions options = Options();
  const std::string inside = (folder_ / "data/train.jsonl").string();
  EXPECT_EQ(*DataCatalog(options).TrainPath("train.jsonl"), inside);
  EXPECT_EQ(*DataCatalog(options).TrainPath(inside), inside) << "an absolute name";
  EXPECT_EQ(*DataCatalog(options).ValidationPath(""), "");
  options.folder += "/";
  EXPECT_EQ(*DataCatalog(options).TrainPath("train.jsonl"), inside);
  options.train_file = "/mine/t.jsonl";
  options.validation_file = "/mine/v.jsonl";
  EXPECT_EQ(*DataCatalog(options).TrainPath("/abs/train.jsonl"), "/mine/t.jsonl");
  EXPECT_EQ(*DataCatalog(options).ValidationPath("valid.jsonl"), "/mine/v.jsonl");
}

// Defect 11 of issue 21: a study comes from whoever reaches the server.
TEST_F(CatalogTest, AStudyOpensNothingOutsideOfTheFolder) {
  Write("secret.jsonl", kRows);
  Write("data/inside.jsonl", kRows);
  fs::create_symlink(folder_ / "secret.jsonl", folder_ / "data/leads_out.jsonl");
  fs::create_symlink("inside.jsonl", folder_ / "data/stays_in.jsonl");
  const DataCatalog catalog(Options());
  for (const char* name :
       {"/dev/zero", "../secret.jsonl", "x/../../secret.jsonl", "leads_out.jsonl", "/etc/passwd"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(catalog.TrainPath(name).status())) << name;
    const DataCatalog::Scan scan = catalog.Measure({{"evil", name, name}}, {});
    EXPECT_THAT(scan.facts, IsEmpty()) << name;
    EXPECT_THAT(scan.complete_studies, IsEmpty());
    ASSERT_THAT(scan.failures, SizeIs(1));
    EXPECT_THAT(
        std::string(scan.failures[0].message()),
        testing::StartsWith(absl::StrCat("data file: ", name, ": expected a path below --data")));
  }
  EXPECT_EQ(*catalog.TrainPath("stays_in.jsonl"), (folder_ / "data/inside.jsonl").string());
}

TEST_F(CatalogTest, WhatIsNoRegularFileIsNotOpened) {
  fs::create_directories(folder_ / "data/folder");
  ASSERT_EQ(mkfifo((folder_ / "data/pipe").c_str(), 0600), 0);
  for (const char* name : {"folder", "pipe", ""}) {
    const DataCatalog::Scan scan = DataCatalog(Options()).Measure({{"s", name, ""}}, {});
    EXPECT_THAT(scan.facts, IsEmpty());
    EXPECT_THAT(scan.failures, SizeIs(*name == 0 ? 0 : 1)) << name;
  }
}

TEST_F(CatalogTest, ReadingEndsWhenItIsToldTo) {
  Write("data/train.jsonl", kRows);
  bool stop = true;
  DataCatalogOptions options = Options();
  options.stopped = [&stop] { return stop; };
  const DataCatalog catalog(options);
  const std::vector<StudyData> studies = {{"s", "train.jsonl", "train.jsonl"}};
  EXPECT_THAT(catalog.Measure(studies, {}).facts, IsEmpty());
  stop = false;
  EXPECT_THAT(catalog.Measure(studies, {}).facts, SizeIs(1));
}

TEST_F(CatalogTest, AStudyWithoutFilesIsComplete) {
  const DataCatalog::Scan scan = DataCatalog(Options()).Measure({{"toy", "", ""}}, {});
  EXPECT_THAT(scan.complete_studies, ElementsAre("toy"));
  EXPECT_THAT(scan.facts, IsEmpty());
}

TEST_F(CatalogTest, ForeignTrainersMayHaveDataOfAnyForm) {
  Write("data/table.csv", "height,weight\n1,2\n");
  const std::vector<StudyData> studies = {{"s", "table.csv", "table.csv"}};
  EXPECT_THAT(DataCatalog(Options()).Measure(studies, {}).complete_studies, IsEmpty());

  DataCatalogOptions foreign = Options();
  foreign.require_text_rows = false;
  const DataCatalog::Scan scan = DataCatalog(foreign).Measure(studies, {});
  EXPECT_THAT(scan.complete_studies, ElementsAre("s"));
  EXPECT_EQ(scan.facts.at(0).digest, *Sha256File((folder_ / "data/table.csv").string()));
}

}  // namespace
}  // namespace hpo::agent
