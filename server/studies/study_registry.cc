#include "server/studies/study_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/spelling.h"

namespace hpo::server {

std::vector<StudyRuntime*> StudyRegistry::All() const {
  absl::MutexLock lock(&mutex_);
  std::vector<StudyRuntime*> studies;
  for (const auto& study : studies_) studies.push_back(study.get());
  return studies;
}

std::vector<std::string> StudyRegistry::Names() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (const auto& study : studies_) names.push_back(study->name());
  for (const auto& [name, why] : unreadable_) names.push_back(name);
  return names;
}

absl::StatusOr<StudyRuntime*> StudyRegistry::Find(const std::string& name) const {
  {
    absl::MutexLock lock(&mutex_);
    if (name.empty() && studies_.size() == 1) return studies_.front().get();
    for (const auto& study : studies_) {
      if (study->name() == name) return study.get();
    }
    if (const auto found = unreadable_.find(name); found != unreadable_.end()) {
      return absl::DataLossError(
          absl::StrCat("study '", name, "': its stored row cannot be read: ", found->second));
    }
  }
  const std::vector<std::string> names = Names();
  const std::string what = name.empty() ? "no study was named" : absl::StrCat("study '", name, "'");
  if (names.empty()) {
    return absl::NotFoundError(absl::StrCat(what, ": expected a study, but there is none"));
  }
  return absl::NotFoundError(
      absl::StrCat(what, ": expected one of ", absl::StrJoin(names, ", "),
                   name.empty() ? "; name it: --study NAME" : DidYouMean(name, names)));
}

int64_t StudyRegistry::version() const {
  absl::MutexLock lock(&mutex_);
  return version_;
}

void StudyRegistry::Add(std::unique_ptr<StudyRuntime> study, int64_t version) {
  {
    absl::MutexLock lock(&mutex_);
    studies_.push_back(std::move(study));
    version_ = version;
  }
  work_.Raise();
}

void StudyRegistry::Changed(int64_t version) {
  {
    absl::MutexLock lock(&mutex_);
    version_ = version;
  }
  work_.Raise();
}

void StudyRegistry::Replace(StudyRuntime& study, std::unique_ptr<StudyRuntime> fresh,
                            int64_t version) {
  {
    absl::MutexLock lock(&mutex_);
    const auto held =
        std::find_if(studies_.begin(), studies_.end(),
                     [&study](const auto& candidate) { return candidate.get() == &study; });
    if (held == studies_.end()) return;
    retired_.push_back(std::move(*held));
    if (fresh != nullptr) {
      *held = std::move(fresh);
    } else {
      studies_.erase(held);
    }
    version_ = version;
  }
  work_.Raise();
}

void StudyRegistry::ReplaceAll(Loaded loaded) {
  absl::MutexLock lock(&mutex_);
  for (std::unique_ptr<StudyRuntime>& study : studies_) {
    study->Retire();
    retired_.push_back(std::move(study));
  }
  studies_ = std::move(loaded.studies);
  unreadable_ = std::move(loaded.unreadable);
  version_ = loaded.version;
}

}  // namespace hpo::server
