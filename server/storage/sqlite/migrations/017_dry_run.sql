-- What dry runs of configurations found, before a worker was given them: of each dry run a row for
-- each GPU that it answered for, position 0 being that of the worker that ran it.
CREATE TABLE dry_run (
  study_id INTEGER NOT NULL REFERENCES study (id),
  number INTEGER NOT NULL,           -- counts the study's dry runs
  position INTEGER NOT NULL,
  params TEXT NOT NULL,
  worker TEXT NOT NULL,
  capability TEXT NOT NULL,          -- the GPU's compute capability
  threads INTEGER NOT NULL,          -- that the GPU holds at once
  state TEXT NOT NULL,
  required INTEGER NOT NULL,         -- the least memory of the GPU; 0: not known
  margin INTEGER NOT NULL,
  took INTEGER NOT NULL,
  message TEXT NOT NULL,
  refused INTEGER NOT NULL,          -- the worker was not given the configuration
  time INTEGER NOT NULL,
  PRIMARY KEY (study_id, number, position)
) WITHOUT ROWID;
