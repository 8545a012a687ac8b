#!/bin/bash
# Fleet @NAME@: @SIZE@ of hpo in one Slurm job array. Written by:
#   @COMMAND@
#
# Each task of the array runs one hpo-worker, which takes trials from the server until the study is
# finished. Start the fleet with `sbatch FILE`. Then:
#   hpo fleet status @NAME@
#   hpo fleet scale @NAME@ --workers N
#   hpo fleet stop @NAME@
#
#SBATCH --job-name=@LABEL@
#SBATCH --array=@ARRAY@
#SBATCH --nodes=1
#SBATCH --ntasks=1
@OPTIONS@
# A task that Slurm preempts, or whose node fails, goes back into the queue and appends to its log.
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=@LOG@
# Before the time limit the worker gets a signal, on which it saves a checkpoint and ends with 75.
#SBATCH --signal=USR1@@SIGNAL_S@

# The whole name of this task: SLURM_JOB_ID alone can mean the whole array.
task="${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"

@SERVER@
@SETUP@
worker=(
@WORKER@
)

# Slurm's signals are for the worker. This script lives on, to put the task back into the queue.
trap '' TERM USR1 USR2

# Prints the state of the task, such as RUNNING. Slurm's controller may be away for some minutes.
state() {
  for _ in {1..20}; do
    squeue --noheader --jobs="$task" --format=%T && return
    sleep 15
  done
}

# Puts the task back into the queue, except if somebody has cancelled it: then it is not RUNNING.
requeue() {
  [ "$(state)" = RUNNING ] && scontrol requeue "$task"
}

# Keeps the task off this node from now on. Slurm takes this only for a task that waits.
exclude_node() {
  local others
  others=$(scontrol show job "$task" | sed -n 's/.*ExcNodeList=\([^ ]*\).*/\1/p')
  [ "$others" = "(null)" ] && others=""
  scontrol update JobId="$task" ExcNodeList="$SLURMD_NODENAME${others:+,$others}"
}

# After a failure: another try, but at most five of a task, which its comment counts.
retry() {
  local failures
  [ "$(state)" = RUNNING ] || return  # from here on the controller answers
  failures=$(scontrol show job "$task" | sed -n 's/.*Comment=hpo-failures:\([0-9]*\).*/\1/p')
  # Counted first: tries that are not counted have no end.
  [ "${failures:-0}" -lt 5 ] && scontrol update JobId="$task" Comment="hpo-failures:$((failures + 1))" && scontrol requeue "$task"
}

srun "${worker[@]}"
code=$?
echo "hpo fleet: the worker of task $task ended with status $code on $SLURMD_NODENAME"
case $code in
  0 | 7 | 8 | 78 | 79) ;;         # nothing is left to do, or it would end so again
  75) requeue ;;                  # work is left
  77) requeue && exclude_node ;;  # the trainer cannot be started on this node
  *) retry ;;                     # an internal error, or the worker was killed
esac
exit "$code"
