// Copies a trial's model folder to where the user wants it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/study/trial.h"

namespace hpo::cli {

// What a program has to do so that there is something to copy.
constexpr char kWhereModelsGo[] =
    "a program saves its model in the folder that the variable HPO_OUTPUT_DIR names";

// Copies every file of the trial's best-weights folder (config.json, model.safetensors, vocabulary
// and tokenizer settings; or whatever a program of the user's own has left) to `destination`, which
// must not exist or be an empty folder. It appears whole or not at all: copied under a temporary
// name beside it, then renamed.
//   FailedPrecondition  the trial kept no model; `destination` is not empty
//   NotFound            the model's folder is not on this machine, or lacks a file
//   Unavailable         the disk refuses
absl::Status ExportModel(const Trial& trial, const std::string& destination);

// Whether a model can be put there: what ExportModel says of `destination`, before there is one.
absl::Status CheckExportTarget(const std::string& destination);

}  // namespace hpo::cli
