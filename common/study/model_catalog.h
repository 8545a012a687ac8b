// What is known of models by their name alone, before any worker has registered them, and the facts
// that conditions of a search space may ask for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/models/model_spec.h"
#include "common/space/search_space.h"

namespace hpo {

// Shape of a published model by its name on the Hugging Face hub ("bert-base-uncased",
// "microsoft/deberta-v3-base", "Qwen/Qwen2.5-7B-Instruct", ...), also where the hub has moved it
// ("google-bert/bert-base-uncased"), or tuned to instructions ("meta-llama/Llama-3.2-1B-Instruct");
// nullopt for another name.
// Source: the models' published config.json files; scripts/reference/model_catalog.py has them.
std::optional<ModelShape> KnownModelShape(absl::string_view name);

// Every name of the table, by family.
std::vector<std::string> KnownModelNames();

// The name that people mean by `name`: itself where the table has it; else the one of the table
// that it begins, as "bert-large" begins bert-large-uncased (NameContinued); else itself. A model
// of a worker or a file that is called exactly `name` comes first: ask for that before.
std::string FullModelName(absl::string_view name);

// Sets the facts of `model` in `space.model_facts`: "model.class" ("heavy" from kHeavyParameters on
// or when listed, else "base") and "model.family". Replaces what was there: what a worker registers
// beats the table above.
void AddModelFacts(SearchSpace& space, const std::string& model, const ModelShape& shape,
                   bool listed_heavy);

// The same for a model of unknown shape: only that it is listed as heavy, or nothing.
void AddModelFacts(SearchSpace& space, const std::string& model, bool listed_heavy);

}  // namespace hpo
