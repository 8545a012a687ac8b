// The data files of this worker: where the files that studies name are, and what of them the server
// may know. A study comes from whoever reaches the server: what it names is opened only below
// --data. Facts are kept on disk by the file's digest, so that a large file is tokenized once for
// each vocabulary. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/models/task_kind.h"
#include "common/models/workload.h"
#include "worker/agent/session/coordinator_client.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo::agent {

struct DataCatalogOptions {
  std::string folder;           // --data
  std::string train_file;       // --train: used for every study's training file
  std::string validation_file;  // --validation
  std::string cache_folder;     // exists
  // The trainer is ours, so a file that cannot be read as text rows is an error. Otherwise such a
  // file is advertised by its digest alone.
  bool require_text_rows = true;
  // Asked while files are read: true ends it.
  std::function<bool()> stopped;
};

using Tokenizers = std::map<std::string, std::unique_ptr<text::Tokenizer>>;

class DataCatalog {
 public:
  explicit DataCatalog(DataCatalogOptions options) : options_(std::move(options)) {}

  // Where a file that a study names lies here: the overriding file, or the name in --data, of which
  // an absolute one must be part; "" for none. Absolute; the file may be missing. Codes: FileBelow.
  absl::StatusOr<std::string> TrainPath(const std::string& name) const;
  absl::StatusOr<std::string> ValidationPath(const std::string& name) const;

  struct Scan {
    std::vector<DataSetFacts> facts;
    // Why files are not among `facts`: the message names the file; Unavailable where it may be read
    // later (MayPass in wait_for_machine.h).
    std::vector<absl::Status> failures;
    std::map<std::string, std::string> left_out;  // the same by the file's name
    // Names of studies that have all their files.
    std::vector<std::string> complete_studies;
  };

  // Measures what `studies` need; less of it where it was stopped.
  Scan Measure(const std::vector<StudyData>& studies, const Tokenizers& tokenizers) const;

 private:
  absl::StatusOr<DataSetFacts> Facts(const absl::StatusOr<std::string>& located,
                                     const std::string& name, TaskKind task,
                                     const Tokenizers& tokenizers) const;
  std::string CachePath(const std::string& digest, TaskKind task) const;

  DataCatalogOptions options_;
};

}  // namespace hpo::agent
