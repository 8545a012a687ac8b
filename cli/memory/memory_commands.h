// The commands of `hpo memory`. Those that need no server say so. A bool: it fits.
//
// Codes, apart from each command's own: InvalidArgument where a word, size or file is wrong,
// NotFound where a file, model or trial is not there.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/commands.h"

namespace hpo {

// Whether the step that the file at `path` ("-": standard input) describes fits its device. Needs
// no server. The format: docs/step-description.md.
absl::StatusOr<bool> EstimateDescribedStep(Session& session, const std::string& path);

// A device that need not be here: see cli/memory/offline_card.h.
struct CardOptions {
  std::vector<std::string> cards;  // sizes
  std::string kind = "cuda";       // or "cpu": a budget of live bytes
  std::string headroom;            // a size; empty: the default
  std::string base;                // the same
};

// Whose training step it is. Empty: hpo-trainer where it runs the model, in float32 with fused
// AdamW, which classifies, else Hugging Face's, in float32 with torch's AdamW; a decoder models
// language there.
struct KernelOptions {
  std::string kernels;    // "hpo-trainer", "huggingface"
  std::string task;       // "text-classification", "language-modeling"
  std::string precision;  // as in docs/step-description.md
  std::string optimizer;
};

// Memory of this machine: cards with the processes on them, host, control group. Needs no server,
// and no card.
absl::Status ShowMemoryStatus(Session& session);

struct MemoryFitOptions {
  std::string model;  // a name of the catalogue, or a config.json
  std::vector<std::string> params;
  std::vector<int64_t> lengths;
  CardOptions device;
  KernelOptions kernels;
  int64_t grad_accum = 1;
};
// The largest micro-batch for each length and card, of a configuration that has `params` besides.
// Whether any cell has one. Needs no server.
absl::StatusOr<bool> ShowMemoryFit(Session& session, const MemoryFitOptions& options);

struct MemorySpaceOptions {
  std::string file;  // a study's file or preset; empty: the session's study, from its server
  CardOptions device;
};
// How much of a study's space fits each card. Whether all of it fits all of them by the study's own
// policy.
absl::StatusOr<bool> ShowMemorySpace(Session& session, const MemorySpaceOptions& options);

struct MemoryPlanOptions {
  std::vector<std::string> params;
  CardOptions device;  // one card
  KernelOptions kernels;
};
// The cheapest changes that make a configuration fit. Whether it fits with them. Needs no server.
absl::StatusOr<bool> ShowMemoryPlan(Session& session, const MemoryPlanOptions& options);

struct MemoryTableOptions {
  std::string file;  // CSV with a header of parameters, a configuration a row; "-": standard input
  CardOptions device;  // one card
  KernelOptions kernels;
};
// What each configuration of a file needs on a card, and what would make it fit. Whether all fit as
// they are. Needs no server.
absl::StatusOr<bool> ShowMemoryTable(Session& session, const MemoryTableOptions& options);

struct MemoryBudgetOptions {
  std::vector<std::string> params;
  std::vector<std::string> compare;  // in place of those of `params`; empty: one column
  CardOptions device;                // one card
  KernelOptions kernels;
};
// What a training run holds at its peak, class by class, before and after a change. Whether the
// last fits. Needs no server.
absl::StatusOr<bool> ShowMemoryBudget(Session& session, const MemoryBudgetOptions& options);

struct MemoryDatasetOptions {
  std::string file;
  std::string tokenizer;  // a model's folder; empty: words are counted
  std::string model;      // empty: the tokenizer's, else bert-base-uncased
  std::string items_key;  // empty: found by itself
  int64_t batch_size = 1;
  int64_t grad_accum = 1;
  int64_t passes = 1;
  int64_t max_length = 0;  // 0: the longest text's, else 128
  int64_t keep_up_to = 0;  // 0: 5 items, or the 99th percentile of the texts
  CardOptions device;
};
// What the batches of a data file take, and what would save how much. Whether the largest batch
// fits as it is. Needs no server.
absl::StatusOr<bool> ShowMemoryDataset(Session& session, const MemoryDatasetOptions& options);

// A trial's predicted and measured bytes, attempt by attempt, why it fit or did not, and what that
// taught.
absl::Status ExplainTrialMemory(Session& session, TrialNumber number);

// `before` as it is given; after: the same with the words of `compare` in place of its own. Whether
// what comes after fits.
absl::StatusOr<bool> CompareMemory(Session& session, const MemoryOptions& before,
                                   const std::vector<std::string>& compare);

}  // namespace hpo
