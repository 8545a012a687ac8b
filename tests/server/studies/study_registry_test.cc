#include "server/studies/study_registry.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/scripted_sampler.h"

namespace hpo::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<StudyRuntime> Study(const std::string& name) {
  StudyFactories factories;
  factories.make_sampler = [](const StudySpec&, std::vector<sampler::PriorStudy>) {
    return std::make_unique<ScriptedSampler>();
  };
  factories.make_pruner = [](const StudySpec&) { return std::make_unique<ScriptedPruner>(0.5); };
  StudyRecord record;
  record.spec.name = name;
  return std::make_unique<StudyRuntime>(record, factories);
}

TEST(StudyRegistry, AnEmptyNameIsTheOnlyStudy) {
  WorkSignal work;
  StudyRegistry registry(work);
  EXPECT_THAT(registry.Find("").status().message(), HasSubstr("there is none"));
  registry.Add(Study("a"), 1);
  EXPECT_EQ((*registry.Find(""))->name(), "a");
  registry.Add(Study("b"), 2);
  EXPECT_THAT(registry.Find("").status().message(),
              HasSubstr("no study was named: expected one of a, b"));
  EXPECT_EQ(registry.version(), 2);
}

TEST(StudyRegistry, ANameThatIsMisspeltSaysWhichWasMeant) {
  WorkSignal work;
  StudyRegistry registry(work);
  EXPECT_EQ(registry.Find("toy").status().message(),
            "study 'toy': expected a study, but there is none");
  registry.Add(Study("criteria"), 1);
  EXPECT_EQ(registry.Find("critera").status().message(),
            "study 'critera': expected one of criteria; did you mean 'criteria'?");
}

TEST(StudyRegistry, WhatWasReplacedIsKeptAndNoLongerFound) {
  WorkSignal work;
  StudyRegistry registry(work);
  registry.Add(Study("a"), 1);
  StudyRuntime* const old = *registry.Find("a");
  registry.Replace(*old, Study("a"), 2);
  EXPECT_NE(*registry.Find("a"), old);
  EXPECT_EQ(old->name(), "a");
  registry.Replace(**registry.Find("a"), nullptr, 3);
  EXPECT_TRUE(registry.All().empty());
}

TEST(StudyRegistry, WhatIsReadAnewRetiresWhatWasThere) {
  WorkSignal work;
  StudyRegistry registry(work);
  registry.Add(Study("a"), 1);
  StudyRuntime* const old = *registry.Find("a");
  const int64_t seen = work.generation();
  StudyRegistry::Loaded loaded{.unreadable = {{"broken", "no JSON"}}, .version = 7};
  loaded.studies.push_back(Study("a"));
  registry.ReplaceAll(std::move(loaded));
  EXPECT_TRUE(absl::IsUnavailable(old->CheckNotRetired()));
  EXPECT_TRUE((*registry.Find("a"))->CheckNotRetired().ok());
  EXPECT_THAT(registry.Names(), ElementsAre("a", "broken"));
  EXPECT_TRUE(absl::IsDataLoss(registry.Find("broken").status()));
  EXPECT_EQ(work.generation(), seen) << "nothing can be written yet";
  registry.Changed(8);
  EXPECT_NE(work.generation(), seen);
}

}  // namespace
}  // namespace hpo::server
