#include "worker/trainer/memory/recovery_policy.h"

namespace hpo::trainer {
namespace {

constexpr int64_t kRedosOfAKind = 1;

}  // namespace

RecoveryAction DecideRecovery(const RecoveryCase& now) {
  const bool passing = now.kind == OomKind::kFragmentation || now.kind == OomKind::kHost;
  if (passing && now.redos < kRedosOfAKind) return RecoveryAction::kRedo;
  if (now.kind == OomKind::kDirtyDevice && !now.steps_done) return RecoveryAction::kEnd;
  if (now.can_shrink) return RecoveryAction::kShrink;
  const bool ours = now.kind != OomKind::kDirtyDevice && now.kind != OomKind::kHost;
  return ours && !now.workspaces_renewed ? RecoveryAction::kRenewWorkspaces : RecoveryAction::kEnd;
}

}  // namespace hpo::trainer
