// The most that the service takes of everything that comes from outside. One table: the checks read
// it, docs/limits.md is written from it (a test compares the two).
//
// What is beyond a limit is refused where it comes in, with the number, unless the table says
// otherwise. Raising one costs memory and time where `why` says so; nothing is stored by it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace hpo {

struct Limit {
  int64_t most = 0;
  absl::string_view unit;    // "bytes", "a trial", ...
  absl::string_view what;    // whatever it is that has the limit
  absl::string_view beyond;  // what becomes of more
  absl::string_view why;
};

inline constexpr Limit kMessageLimit = {
    16 << 20, "bytes", "a message, request or answer", "refused",
    "a result with all that an attempt may measure fits, as a rule"};

inline constexpr Limit kNumberLimit = {
    int64_t{1} << 53, "", "a size, step, count or other whole number (at least 0)", "refused",
    "a double holds it exactly, and a thousand of them do not overflow when added"};

inline constexpr Limit kNameLimit = {
    200, "bytes", "a name: of a worker, metric, parameter, stage, session, request id", "refused",
    "names are keys in memory and in the database, and stand in most error messages"};

inline constexpr Limit kTextLimit = {4096, "bytes",
                                     "a path, a value that is text, a note, an attribute, a label",
                                     "refused", "the longest path of Linux"};

inline constexpr Limit kAttributeLimit = {
    100, "a study or trial", "attributes, note and tags among them",
    "refused, left out of a result", "every list of trials has them"};

inline constexpr Limit kErrorTextLimit = {
    64 << 10, "bytes", "the message or traceback of a trial that failed", "shortened in its middle",
    "every list, watch and restart reads them"};

inline constexpr Limit kListedTextLimit = {
    1000, "bytes", "the same in a list or a watch", "shortened in its middle",
    "nobody reads more of each of many; `hpo trial show` has the whole"};

inline constexpr Limit kLogTailLimit = {
    16 << 10, "bytes", "the last lines of a trial's program that the server keeps",
    "lines before them are left out", "the whole log stays on the worker's disk"};

inline constexpr Limit kStatusTextLimit = {
    2000, "bytes", "an error's text in an answer", "shortened in its middle",
    "gRPC breaks off calls whose trailers are longer than 8 KiB, and a byte may take three there"};

inline constexpr Limit kCommandLimit = {16 << 10, "bytes", "a study's command and its folder",
                                        "refused", "every list of studies has them"};

inline constexpr Limit kStudyFileLimit = {1 << 20, "bytes", "a study file", "refused",
                                          "files of people are a thousand times smaller"};

inline constexpr Limit kArchiveLimit = {int64_t{2} << 30, "bytes", "a study's archive",
                                        "refused when it is restored",
                                        "it is read in memory and written in one transaction"};

inline constexpr Limit kParameterLimit = {
    1000, "a study", "parameters; also the values of one configuration", "refused",
    "checks go over pairs of parameters, and each suggestion over all of them"};

inline constexpr Limit kChoiceLimit = {10'000, "a parameter", "choices", "refused",
                                       "every suggestion weighs each of them"};

inline constexpr Limit kConditionLimit = {1000, "a study", "narrowings (`constraints` with `when`)",
                                          "refused", "every suggestion looks at each of them"};

inline constexpr Limit kMetricLimit = {1000, "a measurement or result", "metrics", "refused",
                                       "a metric for each of some hundred labels is the most seen"};

inline constexpr Limit kMeasurementLimit = {
    20'000, "an attempt", "measurements",
    "not sent by a worker, refused in a report, left out of a result",
    "the pruner and every sampler keep all of them in memory"};

inline constexpr Limit kMemoryRecordLimit = {1000, "an attempt", "memory records",
                                             "not sent by a worker, refused in a report or result",
                                             "they are read together when a trial is shown"};

inline constexpr Limit kImportLimit = {100'000, "a call", "imported trials", "refused",
                                       "they wait in memory and are written in one transaction"};

inline constexpr Limit kFilterLimit = {16, "a call", "states or reasons that a list is asked for",
                                       "refused", "there are fewer than that"};

inline constexpr Limit kLeaseLimit = {1000, "a heartbeat", "leases", "refused",
                                      "a worker runs one trial at a time"};

inline constexpr Limit kFactLimit = {1000, "a worker",
                                     "models, data sets, and token counts of one data set",
                                     "refused", "each registration is read when trials are placed"};

inline constexpr Limit kLabelLimit = {10'000, "a data set or study", "labels", "refused",
                                      "they travel with every registration and assignment"};

inline constexpr Limit kLengthLimit = {100'000, "a data set and tokenizer", "different row lengths",
                                       "refused", "no tokenizer of ours takes longer texts"};

inline constexpr Limit kPageLimit = {1000, "a page", "studies or trials", "refused",
                                     "a page is read and sent as a whole"};

inline constexpr Limit kTableLimit = {20'000, "a page", "rows of a table of trials", "refused",
                                      "it has columns instead of messages"};

inline constexpr Limit kTableTextLimit = {
    300, "bytes", "how a trial ended, in a table of trials", "shortened in its middle",
    "a page of 20,000 of them fits into a message; `hpo trial show` has the whole"};

inline constexpr Limit kHistoryLimit = {10'000, "a history", "trials for a chart", "refused",
                                        "a chart has fewer pixels"};

inline constexpr Limit kCurveLimit = {200, "a call", "trials whose curves are asked for", "refused",
                                      "more lines cannot be told apart"};

inline constexpr Limit kCurvePointLimit = {2000, "a curve", "points for a chart", "refused",
                                           "a chart has fewer pixels"};

inline constexpr Limit kTimelineLimit = {10'000, "a call", "attempts of a timeline", "refused",
                                         "a chart has fewer pixels"};

inline constexpr Limit kFrontierLimit = {40, "an axis", "points of a memory frontier", "refused",
                                         "memory is estimated for each pair of them"};

inline constexpr Limit kCapacityLimit = {16, "a call", "capacities of GPUs to compare", "refused",
                                         "a plan is made for each of them"};

inline constexpr Limit kPageBytesLimit = {2 << 20, "bytes", "a page of trials", "on the next page",
                                          "a gRPC client takes 4 MiB unless told otherwise"};

inline constexpr Limit kWatchLimit = {
    100, "a client address", "open watches", "refused",
    "each holds one of the server's 2,048 threads, which heartbeats need as well"};

inline constexpr Limit kStatementLimit = {
    100, "a database connection", "prepared statements kept", "prepared again when needed",
    "each takes some 10 KiB; the server's own texts are fewer"};

inline constexpr Limit kEventLimit = {
    100'000, "a study", "changes that a watch can go back to", "the oldest are forgotten",
    "a watch that was away longer lists the trials and goes on from the newest"};

inline constexpr Limit kOptunaNameLimit = {
    2048, "bytes", "a name in a study of Optuna's: of the study, a parameter, an attribute",
    "refused", "Optuna's own database takes 512 characters"};

inline constexpr Limit kOptunaJsonLimit = {1 << 20, "bytes",
                                           "an attribute or a distribution in a study of Optuna's",
                                           "refused", "each reader of the trial gets all of them"};

inline constexpr Limit kOptunaAttributeLimit = {10'000, "a call",
                                                "attributes of a trial that an Optuna client adds",
                                                "refused", "they are written in one transaction"};

inline constexpr Limit kOptunaUnfinishedLimit = {
    1'000'000, "a call", "trials that an Optuna client asks for by their ids", "refused",
    "it asks so for what had not finished when it asked last"};

inline constexpr Limit kOptunaAnswerLimit = {
    512 << 20, "bytes", "the trials in an answer to an Optuna client", "refused",
    "it takes one answer for all there is, so there are no pages; some 500,000 trials fit"};

inline constexpr Limit kRequestIdDays = {
    7, "days", "the answer to a request id", "forgotten: the id asks again",
    "longer than any worker keeps a result that it cannot deliver unseen"};

// All of the above as the table of docs/limits.md, one row a limit.
std::string LimitsTable();

// `text`, where it has more than `most` bytes, with its middle replaced by "... N bytes left out
// ...": the start names the error, the end has the traceback's last line. Characters stay whole.
// The limit is at least 100.
std::string Shortened(absl::string_view text, const Limit& limit);

// For error messages: `text` in quotes, cut after 60 bytes.
std::string Quoted(absl::string_view text);

}  // namespace hpo
