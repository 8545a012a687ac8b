// Where the attempts of a trial leave what a later attempt continues from. Free of torch.
//
// A checkpoint is a folder `<step>-<attempt>` below the trial's. It appears whole or not at all:
// its files are written under a temporary name and synced, a manifest with their sizes and
// checksums comes last, then the folder is renamed. One that a disk or a copy has torn is told by
// its manifest and passed over.
//
// Attempts may run on several machines that share the folder. One that was given up but runs on
// writes folders of its own name and removes none of a later attempt, so it can do no harm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"

namespace hpo::trainer {

struct Checkpoint {
  std::string folder;
  int64_t step = 0;
  AttemptNumber attempt;
};

// What making room has cost, for people: "removed the checkpoint of step 100 to make room".
using CheckpointNotes = std::vector<std::string>;

// Not thread-safe.
class CheckpointStore {
 public:
  // `folder`: the trial's; made when the first checkpoint is written. `quota`: of all checkpoints
  // below the folder's parent, the study's; 0: none.
  CheckpointStore(std::string folder, AttemptNumber attempt, Bytes quota)
      : folder_(std::move(folder)), attempt_(attempt), quota_(quota) {}

  // Every checkpoint there is, that of the most steps first; of equals the later attempt's. Unread:
  // see Verify.
  std::vector<Checkpoint> List() const;

  // Reads all of it.
  //   DataLoss  no manifest, or one that does not match the files; names what
  absl::Status Verify(const Checkpoint& checkpoint) const;

  // Makes the checkpoint of `step` of what `fill` writes into the folder it is given, of about
  // `size`, then removes the older ones. Where the disk is full it makes room and tries once again.
  //   ResourceExhausted  the disk is full, or the study's quota would be exceeded
  //   a status           of `fill`, or of the disk (common/files/read_file.h)
  absl::StatusOr<Checkpoint> Write(int64_t step, Bytes size,
                                   absl::FunctionRef<absl::Status(const std::string& folder)> fill,
                                   CheckpointNotes& notes);

  // Removes what nobody will continue from: all but the newest checkpoint that is whole, which
  // stays whatever happens. False: there was nothing else. Reads it.
  bool MakeRoom(CheckpointNotes& notes) const;

 private:
  absl::Status CheckQuota(Bytes size) const;
  absl::StatusOr<Checkpoint> WriteOnce(
      int64_t step, absl::FunctionRef<absl::Status(const std::string& folder)> fill);
  // Checkpoints and remains of writing that this attempt may remove.
  std::vector<Checkpoint> OwnOrEarlier() const;
  void RemoveRemains() const;

  std::string folder_;
  AttemptNumber attempt_;
  Bytes quota_;
};

}  // namespace hpo::trainer
