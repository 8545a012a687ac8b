"""What the server advises, for those who have the study in Python: its commands need a server to ask."""

import re

# As sampler/factory/termination.cc, server/studies/study_runtime.cc and server/studies/study_end.cc say it, and what does the
# same in Python.
_SAME = ((r"hpo study edit (\S+) FILE, with more values in FILE", "{study}.edit({{...}}) gives it more values"),
         (r"hpo trial retry --failed --study \S+", "{study}.retry() queues them again"),
         (r"hpo study resume \S+", "{study}.resume() has it go on"),
         (r"hpo study extend \S+ --target none", "{study}.update(remove_target=True) removes the target"))
_GO_ON = "; to go on: "


def in_python(text: str, study: str, address: str = "") -> str:
    """`study`: an expression that gives the study; empty: it is gone with what has opened it, and so is the advice.
    `address`: of a server that answers for as long as the study is open; empty: the command is left out."""
    what, _, advice = text.partition(_GO_ON)
    for command, same in _SAME:
        found = re.match(command, advice)
        if found and not study:
            return what
        if found:
            own = found[0].partition(",")[0]
            return f"{what}; {same.format(study=study)}" + (f" (or: {own} --server {address})" if address else "")
    return text
