#include "worker/trainer/memory/recovery_policy.h"

#include <utility>

namespace hpo::trainer {
namespace {

constexpr int64_t kRedosOfAKind = 1;

RecoveryStep End(RecoveryState state) {
  const RecoveryAction action = state.certain ? RecoveryAction::kEnd : RecoveryAction::kFail;
  return {.state = std::move(state), .action = action};
}

RecoveryStep Decide(RecoveryState state) {
  RecoveryAction action = DecideRecovery(state.now);
  if (action == RecoveryAction::kEnd) return End(std::move(state));
  if (action == RecoveryAction::kRenewWorkspaces) state.workspaces_renewed = true;
  if (action == RecoveryAction::kRedo) {
    ++state.redos[state.now.kind];
    if (state.now.kind == OomKind::kFragmentation) action = RecoveryAction::kExpandSegments;
  }
  return {.state = std::move(state), .action = action};
}

}  // namespace

RecoveryAction DecideRecovery(const RecoveryCase& now) {
  const bool passing = now.kind == OomKind::kFragmentation || now.kind == OomKind::kHost;
  if (passing && now.redos < kRedosOfAKind) return RecoveryAction::kRedo;
  if (now.kind == OomKind::kDirtyDevice && !now.steps_done) return RecoveryAction::kEnd;
  if (now.can_shrink) return RecoveryAction::kShrink;
  const bool ours = now.kind != OomKind::kDirtyDevice && now.kind != OomKind::kHost;
  return ours && !now.workspaces_renewed ? RecoveryAction::kRenewWorkspaces : RecoveryAction::kEnd;
}

RecoveryStep NextRecovery(RecoveryState state, const RecoveryEvent& event) {
  const auto* const met = std::get_if<FaultMet>(&event);
  if (met == nullptr) {
    const bool shrank = std::exchange(state.now.can_shrink, false);
    return shrank ? Decide(std::move(state)) : End(std::move(state));
  }
  if (met->device_lost) return {.state = std::move(state), .action = RecoveryAction::kLoseDevice};
  state.now = {.kind = met->kind,
               .can_shrink = met->may_shrink,
               .steps_done = met->steps_done,
               .redos = state.redos[met->kind],
               .workspaces_renewed = state.workspaces_renewed};
  state.certain = met->certain;
  return met->clean ? Decide(std::move(state)) : End(std::move(state));
}

}  // namespace hpo::trainer
