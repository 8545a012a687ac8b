#!/usr/bin/env python3
# Fleet @NAME@: @SIZE@ of hpo as actors of Ray. Written by:
#   @COMMAND@
#
# Run this as a job, `ray job submit --working-dir FOLDER -- python3 FILE`, or on a node of the
# cluster, `python3 FILE`. It lasts as long as its workers. Then:
#   hpo fleet status @NAME@
#   hpo fleet scale @NAME@ --workers N
#   hpo fleet stop @NAME@
@SECRET@
import hpo.ray

# An actor whose node is lost starts elsewhere, and its trial continues from the last checkpoint.
raise SystemExit(
    hpo.ray.run(
        @ARGUMENTS@
    )
)
