// A struct's fields are listed once, by a function in its namespace:
//
//   void VisitFields(Is<Budget> auto& budget, auto visit) {
//     visit({"trials", kAlways, "≥ 0", "trials that may end"}, budget.trials);
//   }
//
// `visit` takes a Field and the member. What reads, writes or describes a Budget is a lambda that
// is handed to it: json_fields.h, the study file (common/study_file/study_file.cc) and its manual.
#pragma once

#include <concepts>
#include <type_traits>

namespace hpo {

// T is Spec, or const Spec: one list serves readers and writers.
template <typename T, typename Spec>
concept Is = std::same_as<std::remove_const_t<T>, Spec>;

// Where a field has to be.
enum Presence {
  kMandatory,  // in a file that people write, and in JSON
  kRequired,   // in JSON
  kAlways,     // nowhere, as older JSON lacks it; written always, null where it is not set
  kIfSaid,     // nowhere; written where it differs from its default
};

inline constexpr char kAutoWord[] = "auto";
inline constexpr char kNotSent[] = "";

// What a field of a study is in the job of a trainer (common/protocol/trial_task.h).
struct JobField {
  const char* key = nullptr;   // nullptr: the job does not have it
  const char* wire = nullptr;  // its name in messages where that is not `key`
  Presence presence = kAlways;
};

struct Field {
  const char* key;
  Presence presence = kRequired;
  // For the manual: the range in words, what the field means, and what holds where it is not set.
  // A file may write that as kAutoWord.
  const char* range = "";
  const char* means = "";
  const char* if_unset = "none";
  bool zero_is_known = false;  // a size of 0 is one; else it stands for "unknown"
  // Its name in messages (proto/convert/message_fields.h) where that is not the key.
  const char* wire = nullptr;
  JobField job = {};
  // false: not a column of its table (server/storage/row_codec.h), but its key, or rows of another.
  bool in_row = true;
};

// `field`, which the job of a trainer has as well: by its own key unless `job` names another.
constexpr Field InJob(Field field, JobField job = {}) {
  field.job = job;
  if (job.key == nullptr) field.job.key = field.key;
  return field;
}

template <typename T>
concept HasFields = requires(T& value) {
  VisitFields(value, [](const Field&, auto&) {});
};

}  // namespace hpo
